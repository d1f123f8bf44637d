//! Several processes that train as one, started as a shell loop starts them.

use super::resume::state;
use super::tiny::Place;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Long enough for a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(180);

/// Processes of one training.
struct Crowd<'a> {
    place: &'a Place,
    port: u16,
    children: Vec<Child>,
}

impl<'a> Crowd<'a> {
    /// Two ranks, each with its own arguments behind `train`.
    fn start(place: &'a Place, arguments: [&[&str]; 2]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut crowd = Self { place, port, children: Vec::new() };
        crowd.children = (0..2).map(|rank| crowd.spawn(rank, arguments[rank])).collect();
        crowd
    }

    fn spawn(&self, rank: usize, arguments: &[&str]) -> Child {
        let file = |end: &str| File::create(self.file(rank, end)).unwrap();
        Command::new(env!("CARGO_BIN_EXE_dflash"))
            .arg("train")
            .args(arguments)
            .current_dir(self.place.path("."))
            .env_remove("DFLASH_RUNS")
            .envs([("WORLD_SIZE", "2"), ("RANK", ["0", "1"][rank]), ("LOCAL_RANK", ["0", "1"][rank])])
            .envs([("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &self.port.to_string())])
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap()
    }

    fn file(&self, rank: usize, end: &str) -> PathBuf {
        self.place.path(&format!("rank{rank}.{end}"))
    }

    fn said(&self, rank: usize) -> String {
        fs::read_to_string(self.file(rank, "err")).unwrap()
    }

    /// Waits until a rank says something on stderr.
    fn hears(&mut self, rank: usize, words: &str) {
        let began = Instant::now();
        while !self.said(rank).contains(words) {
            let ended = self.children[rank].try_wait().unwrap();
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "rank {rank} {ended:?}:\n{}", self.said(rank));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, rank: usize, name: &str) {
        let pid = self.children[rank].id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for a rank's end; its exit code.
    fn code(&mut self, rank: usize) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.children[rank].try_wait().unwrap() {
                assert!(!self.said(rank).contains("panicked"), "{}", self.said(rank));
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "rank {rank} does not end:\n{}", self.said(rank));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Both come to a good end; the run's directory, which rank 0 alone prints.
    fn ends_well(mut self) -> PathBuf {
        let codes = [0, 1].map(|rank| self.code(rank));
        assert_eq!(codes, [Some(0); 2], "{}\n{}", self.said(0), self.said(1));
        assert_eq!(fs::read_to_string(self.file(1, "out")).unwrap(), "");
        PathBuf::from(fs::read_to_string(self.file(0, "out")).unwrap().trim())
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        // What a failed test leaves.
        self.children.iter_mut().for_each(|child| drop((child.kill(), child.wait())));
    }
}

/// A place with texts, and configurations for one process (two samples a step), and for ranks (one each).
fn place() -> Place {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap();
    // What is learnt in a step does not depend on how many are to come.
    let config = config.replace("steps = 12", "steps = 12\nschedule = \"constant\"\nwarmup = 0.0")
        + "[checkpoint]\nevery = 5\nkeep = 0\n";
    fs::write(place.config(), &config).unwrap();
    let one = config.replace("batch = 2", "batch = 1");
    fs::write(place.path("ranks.toml"), &one).unwrap();
    let two = one.replace("[pipeline]", "[pipeline]\ndrafter_devices = [\"cpu\", \"cpu\"]");
    fs::write(place.path("four.toml"), two.replace("[\"cpu\", \"cpu\"]", "[\"cpu\", \"cpu\", \"cpu\", \"cpu\"]"))
        .unwrap();
    fs::write(place.path("two.toml"), two).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    place
}

fn single(place: &Place, arguments: &[&str]) -> PathBuf {
    place.path(place.ok(&[&["train"], arguments].concat()).trim())
}

/// A column of metrics.csv.
fn column(run: &Path, name: &str) -> Vec<f64> {
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let at = text.lines().next().unwrap().split(',').position(|column| column == name).unwrap();
    text.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

fn checkpoint(run: &Path, step: usize) -> PathBuf {
    run.join(format!("checkpoints/step-{step:06}"))
}

/// The step of the newest checkpoint.
fn newest(run: &Path) -> usize {
    let entries = fs::read_dir(run.join("checkpoints")).unwrap();
    let step = |name: String| name.strip_prefix("step-")?.parse().ok();
    entries.filter_map(|entry| step(entry.unwrap().file_name().into_string().unwrap())).max().unwrap()
}

#[test]
fn two_processes_learn_what_one_learns_with_twice_the_batch() {
    let place = place();
    let run = Crowd::start(&place, [&["ranks.toml"], &["ranks.toml"]]).ends_well();
    let run = place.path(run.to_str().unwrap());
    // One drafter with twice the batch: the same but for rounding.
    let twice = single(&place, &["tiny.toml"]);
    same_but_for_rounding(&run, &twice);
    // Two drafters of one process: the same additions, and so the same bits.
    let two = single(&place, &["two.toml"]);
    assert_eq!(state(&checkpoint(&run, 12)), state(&checkpoint(&two, 12)));
    // And while the backward pass still goes on: the same again.
    let meanwhile = ["ranks.toml", "--set", "pipeline.reduce_overlap=true", "--name", "meanwhile"];
    let meanwhile = Crowd::start(&place, [&meanwhile, &meanwhile]).ends_well();
    assert_eq!(state(&checkpoint(&place.path(meanwhile.to_str().unwrap()), 12)), state(&checkpoint(&two, 12)));
    is_seen_by_all_readers(&place, run.to_str().unwrap());
}

#[test]
fn drafters_of_two_processes_learn_as_those_of_one() {
    let place = place();
    let run = Crowd::start(&place, [&["two.toml"], &["two.toml"]]).ends_well();
    same_but_for_rounding(&place.path(run.to_str().unwrap()), &single(&place, &["four.toml"]));
}

fn same_but_for_rounding(run: &Path, other: &Path) {
    for name in ["loss", "gradient_norm", "accuracy"] {
        let (own, other) = (column(run, name), column(other, name));
        assert_eq!((own.len(), other.len()), (3, 3), "{name}");
        for (own, other) in own.iter().zip(&other) {
            assert!((own - other).abs() <= 1e-4 * other.abs(), "{name}: {own} and {other}");
        }
    }
}

#[test]
fn nccl_without_gpus_is_refused_at_once_by_its_own_words() {
    let place = place();
    let nccl = ["ranks.toml", "--set", "pipeline.reduce=nccl", "--set", "pipeline.silence_seconds=3600"];
    let mut crowd = Crowd::start(&place, [&nccl, &nccl]);
    // Long before anybody's silence is over. Who hears of the other's end before its own says that.
    let codes = [0, 1].map(|rank| crowd.code(rank));
    assert!(codes.contains(&Some(2)) && codes.iter().all(|code| matches!(code, Some(2 | 4))), "{codes:?}");
    for rank in [0, 1] {
        let said = crowd.said(rank);
        assert!(said.contains("reduce = \"nccl\": rank 0 trains on a CPU") && !said.contains("no rank says"), "{said}");
    }
}

/// Both ranks are in the timeline, in the table, on the screen; and how far their clocks are apart.
fn is_seen_by_all_readers(place: &Place, run: &str) {
    let files = fs::read_dir(Path::new(run).join("timeline")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(["rank0-", "rank1-"].iter().all(|rank| names.iter().any(|name| name.starts_with(rank))), "{names:?}");
    let csv = place.ok(&["report", run, "--format", "csv"]);
    let rows = |rank: &str| csv.lines().filter(|line| line.split(',').any(|field| field == rank)).count();
    assert!(rows("0") > 0 && rows("1") > 0, "{csv}");
    let report = place.ok(&["report", run]);
    assert!(!report.contains("torn") && report.contains("drafter.reduce"), "{report}");
    let top = place.ok(&["top", run, "--once"]);
    assert!(top.matches("drafter:0").count() >= 2, "{top}");
    let dump = place.ok(&["dump", run]);
    assert!(dump.contains("clock.offset") && dump.contains("clock.uncertainty"), "{dump}");
}

#[test]
fn ranks_that_were_started_differently_are_refused() {
    let place = place();
    let mut crowd = Crowd::start(&place, [&["ranks.toml"], &["ranks.toml", "--seed", "7"]]);
    for rank in [0, 1] {
        assert_eq!(crowd.code(rank), Some(2), "{}", crowd.said(rank));
        let said = crowd.said(rank);
        assert!(said.contains("run.seed is 0 at rank 0 and 7 at rank 1"), "{said}");
    }
    assert!(!place.path("runs").exists(), "nothing was begun");
    let lacking = Command::new(env!("CARGO_BIN_EXE_dflash"))
        .args(["train", "ranks.toml"])
        .current_dir(place.path("."))
        .env("WORLD_SIZE", "2")
        .env_remove("RANK")
        .output()
        .unwrap();
    let said = String::from_utf8(lacking.stderr).unwrap();
    assert!(lacking.status.code() == Some(2) && said.contains("RANK is not set"), "{said}");
}

#[test]
fn a_rank_that_is_killed_ends_the_others_by_name_and_the_run_goes_on() {
    let place = place();
    let endless = ["ranks.toml", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&endless, &endless]);
    crowd.hears(0, "step 5/");
    let died = Instant::now();
    crowd.signal(1, "-KILL");
    assert_eq!(crowd.code(0), Some(4), "{}", crowd.said(0));
    assert!(died.elapsed() < Duration::from_secs(60));
    let named = format!("rank 1 (process {} on ", crowd.children[1].id());
    let said = crowd.said(0);
    assert!(said.contains(&named) && said.contains("is gone") && said.contains("--resume"), "{said}");
    drop(crowd);
    assert!(place.ok(&["runs"]).contains("failed"));

    // The other way round, in the same run: rank 0 holds store and connections.
    let run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
    let further = ["ranks.toml", "--resume", "auto", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&further, &further]);
    crowd.hears(0, "resumed after step");
    crowd.hears(0, "/1000000: loss");
    crowd.signal(0, "-KILL");
    assert_eq!(crowd.code(1), Some(4), "{}", crowd.said(1));
    let named = format!("rank 0 (process {} on ", crowd.children[0].id());
    assert!(crowd.said(1).contains(&named) && crowd.said(1).contains("is gone"), "{}", crowd.said(1));
    drop(crowd);

    // What was trained before is not lost, and what follows is as if nothing had happened.
    let last = newest(&run) + 3;
    let steps = last.to_string();
    let end = ["ranks.toml", "--resume", run.to_str().unwrap(), "--steps", &steps];
    let resumed = Crowd::start(&place, [&end, &end]).ends_well();
    assert_eq!(resumed, run);
    let whole = single(&place, &["two.toml", "--name", "whole", "--steps", &steps]);
    assert_eq!(state(&checkpoint(&run, last)), state(&checkpoint(&whole, last)));
}

#[test]
fn a_signal_to_one_rank_stops_all_after_the_same_step() {
    let place = place();
    let endless = ["ranks.toml", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&endless, &endless]);
    crowd.hears(0, "step 5/");
    crowd.signal(1, "-TERM");
    assert_eq!([0, 1].map(|rank| crowd.code(rank)), [Some(0), Some(143)], "{}\n{}", crowd.said(0), crowd.said(1));
    drop(crowd);
    let run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
    assert!(place.ok(&["runs"]).contains("stopped"));
    let stopped = newest(&run);
    assert!(stopped >= 5);
    // Its end in good time is asked of one rank, too.
    let further = ["ranks.toml", "--resume", "auto", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&further, &further]);
    crowd.hears(0, "/1000000: loss");
    crowd.signal(0, "-USR1");
    assert_eq!([0, 1].map(|rank| crowd.code(rank)), [Some(0); 2], "{}\n{}", crowd.said(0), crowd.said(1));
    drop(crowd);
    assert!(newest(&run) > stopped);
}

#[test]
fn a_rank_that_hangs_is_named_once_it_has_been_silent_for_long_enough() {
    let place = Place::new();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/sim/one_and_one.toml");
    let config = fs::read_to_string(shipped).unwrap().replace("[pipeline]", "[pipeline]\nsilence_seconds = 10");
    fs::write(place.path("sim.toml"), config).unwrap();
    let endless = ["sim.toml", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&endless, &endless]);
    crowd.hears(0, "drafter:0 iteration");
    crowd.signal(1, "-STOP");
    assert_eq!(crowd.code(0), Some(4), "{}", crowd.said(0));
    let said = crowd.said(0);
    assert!(said.contains("rank 1 (process ") && said.contains("has said nothing for 10s"), "{said}");
    // It hears of its end as soon as it goes on.
    crowd.signal(1, "-CONT");
    assert_eq!(crowd.code(1), Some(4), "{}", crowd.said(1));
}

#[test]
fn rank_0_evaluates_for_all_and_each_rank_keeps_its_own_hidden_states() {
    let place = place();
    let config = fs::read_to_string(place.path("ranks.toml")).unwrap();
    let config = config.replace("[eval]", "[eval]\nevery = 3").replace("\"memory\"", "\"disk\"");
    fs::write(place.path("ranks.toml"), config).unwrap();
    let steps = ["ranks.toml", "--steps", "4"];
    let run = place.path(Crowd::start(&place, [&steps, &steps]).ends_well().to_str().unwrap());
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let at = metrics.lines().next().unwrap().split(',').position(|column| column == "acceptance_length").unwrap();
    let told: Vec<_> = metrics.lines().skip(1).map(|line| line.split(',').nth(at).unwrap()).collect();
    assert_eq!(told.iter().filter(|tau| !tau.is_empty()).count(), 2, "after step 3 and at the end: {metrics}");
    let dump = place.ok(&["dump", run.to_str().unwrap()]);
    assert!(dump.contains("sync.eval"), "rank 1 waits for it");
    // It reads again what it has read.
    Crowd::start(&place, [&steps, &steps]).ends_well();
}

#[test]
fn texts_that_differ_are_refused_and_nothing_is_left() {
    let place = place();
    let config = fs::read_to_string(place.path("ranks.toml")).unwrap().replace("\"memory\"", "\"disk\"");
    fs::write(place.path("ranks.toml"), &config).unwrap();
    let prompts = fs::read_to_string(place.path("train.jsonl")).unwrap();
    let fewer: Vec<&str> = prompts.lines().skip(1).collect();
    fs::write(place.path("fewer.jsonl"), fewer.join("\n")).unwrap();
    let other = config.replace("train.jsonl", "fewer.jsonl").replace("shards = \"", "shards = \"other-");
    fs::write(place.path("other.toml"), other).unwrap();
    place.ok(&["prepare", "other.toml"]);
    let names = || {
        let entries = fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| !name.to_string_lossy().starts_with("rank")).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    let mut crowd = Crowd::start(&place, [&["ranks.toml"], &["other.toml"]]);
    for rank in [0, 1] {
        assert_eq!(crowd.code(rank), Some(2), "{}", crowd.said(rank));
        assert!(crowd.said(rank).contains("prepared from "), "{}", crowd.said(rank));
    }
    assert_eq!(names(), before, "no run, and no hidden states");
}

#[test]
fn a_rank_that_was_not_told_of_resume_needs_nothing_of_the_first_attempt() {
    let place = place();
    let given = single(&place, &["tiny.toml", "--steps", "2"]).join("checkpoints/export");
    let config = fs::read_to_string(place.path("ranks.toml")).unwrap();
    let config = config.replace("[drafter]", &format!("[drafter]\ninit = {:?}", given.to_str().unwrap()));
    fs::write(place.path("ranks.toml"), config).unwrap();
    let begin = ["ranks.toml", "--steps", "5"];
    let run = Crowd::start(&place, [&begin, &begin]).ends_well();
    fs::remove_dir_all(given).unwrap();
    let run = place.path(run.to_str().unwrap());
    let further = ["ranks.toml", "--steps", "7", "--resume", run.to_str().unwrap()];
    assert_eq!(Crowd::start(&place, [&further, &further[..3]]).ends_well(), run);
}
