//! The recipe for Slurm of docs/pipeline.md, run with stand-ins for Slurm and dflash.

use dflash_profiler::timeline::{Manifest, RunDir, State};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The documentation's lines from `#!/bin/bash` on, without their indent.
fn recipe() -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pipeline.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let lines = text.lines().skip_while(|line| line.trim() != "#!/bin/bash");
    lines.map_while(|line| line.strip_prefix("    ")).map(|line| format!("{line}\n")).collect()
}

const SRUN: &str = r#"#!/bin/bash
code=0
for ((task = 0; task < SLURM_NTASKS; task++)); do SLURM_PROCID=$task SLURM_LOCALID=$((task % 2)) "$@" || code=$?; done
exit $code
"#;

const SCONTROL: &str = r#"#!/bin/bash
case "$1" in
    show) printf 'node1\nnode2\n' ;;
    requeue) echo "requeued $2" >>log ;;
esac
"#;

const DFLASH: &str = r#"#!/bin/bash
echo "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $*" >>log
[[ $RANK != 0 ]] || { echo starting; cat run; }
[[ $RANK != "$(cat failing)" ]] || exit 4
"#;

/// The job's exit code, and what is in the log, once the recipe has run over a training that came to an end of this kind.
fn job(state: State, failing: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    for (name, text) in [("srun", SRUN), ("scontrol", SCONTROL), ("dflash", DFLASH), ("job", &recipe())] {
        write(name, text);
        std::fs::set_permissions(dir.path().join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut manifest = Manifest::default();
    manifest.state = state;
    let run = RunDir::create(&dir.path().join("runs"), "slurm", manifest).unwrap();
    write("failing", failing);
    write("run", &format!("{}\n", run.path().display()));
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let slurm = [("SLURM_NTASKS", "4"), ("SLURM_JOB_NODELIST", "node[1-2]"), ("SLURM_JOB_ID", "77"), ("PATH", &path)];
    let status = Command::new("bash").arg("job").current_dir(dir.path()).envs(slurm).status().unwrap();
    (status.code(), std::fs::read_to_string(dir.path().join("log")).unwrap())
}

#[test]
fn the_documented_job_starts_every_rank_and_asks_for_another_turn_only_where_it_was_stopped() {
    let stopped = job(State::Stopped, "none");
    let said = "4 node1:29500 train c.toml --resume auto --time-limit 11:50:00";
    let ranks: String = (0..4).map(|rank| format!("{rank} {} {said}\n", rank % 2)).collect();
    assert_eq!(stopped, (Some(0), format!("{ranks}requeued 77\n")));
    assert_eq!(job(State::Finished, "none"), (Some(0), ranks.clone()));
    // Slurm would call the job done, and go on with what depends on it.
    assert_eq!(job(State::Failed, "3"), (Some(4), ranks));
}
