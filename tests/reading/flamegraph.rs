//! `dflash flamegraph`: forms, parts and changes, as a user asks for them.

use super::support::{dflash, recorded_run, skipped};
use std::process::Command;

#[test]
fn a_slower_stage_is_red_and_its_parents_too() {
    let dir = tempfile::tempdir().unwrap();
    let (base, run) = (recorded_run(dir.path(), "a", 1.0), recorded_run(dir.path(), "b", 1.5));
    let (base, run) = (base.path().to_str().unwrap(), run.path().to_str().unwrap());
    let said = dflash(dir.path(), &["flamegraph", run, "--diff", base]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    // 20 ms become 30, of iterations of 30.1 ms and a wobble.
    let title = |name: &str| {
        let titles = said.stdout.split("<title>").skip(1).filter_map(|rest| rest.split("</title>").next());
        titles.filter(|title| title.starts_with(name)).map(str::to_owned).next().unwrap()
    };
    for name in ["total (", "drafter:0 (", "drafter.backward ("] {
        assert!(title(name).contains("; +24."), "{}", title(name));
    }
    assert!(title("drafter.forward (").contains("; 0.00%"), "{}", title("drafter.forward ("));
    let folded = dflash(dir.path(), &["flamegraph", run, "--diff", base, "--format", "folded"]).stdout;
    assert!(folded.lines().any(|line| line == "total;drafter:0;residue 30000000 30000000"), "{folded}");
    let said = dflash(dir.path(), &["flamegraph", run, "--diff", base, "--format", "pprof", "-o", "x"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
}

#[test]
fn forms_for_other_viewers() {
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "a", 1.0);
    let said = dflash(dir.path(), &["flamegraph", "--format", "speedscope"]);
    let file: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(file["profiles"][0]["type"], "sampled");
    let said = dflash(dir.path(), &["flamegraph", "--format", "pprof", "-o", "x.pb.gz"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(std::fs::read(dir.path().join("x.pb.gz")).unwrap().starts_with(&[0x1f, 0x8b]), "gzip");
}

/// `go tool pprof` reads the profile: the same total, and each frame where it belongs.
#[test]
fn go_tool_pprof_opens_it() {
    let go = Command::new("go").args(["tool", "pprof", "-h"]).output();
    if !go.is_ok_and(|output| String::from_utf8_lossy(&output.stderr).contains("usage")) {
        return skipped("a profile in go tool pprof", "there is no `go` with its pprof");
    }
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "a", 1.0);
    assert_eq!(dflash(dir.path(), &["flamegraph", "--format", "pprof", "-o", "x.pb.gz"]).code, Some(0));
    let folded = dflash(dir.path(), &["flamegraph", "--format", "folded"]).stdout;
    let all = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum::<u64>();
    let mut pprof = Command::new("go");
    pprof.args(["tool", "pprof", "-raw", "x.pb.gz"]).current_dir(dir.path()).env("HOME", dir.path());
    let output = pprof.output().unwrap();
    let (raw, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let samples =
        raw.split("Samples:\nwall/nanoseconds").nth(1).and_then(|rest| rest.split("Locations").next()).unwrap();
    let weights = samples.lines().filter_map(|line| line.split_once(':')?.0.trim().parse::<u64>().ok());
    assert_eq!(weights.sum::<u64>(), all, "{raw}");
    assert!(raw.contains("drafter.backward") && raw.contains("residue"), "{raw}");
}

#[test]
fn parts_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "a", 1.0);
    let total = |arguments: &[&str]| -> u64 {
        let said = dflash(dir.path(), &[&["flamegraph", "--format", "folded"], arguments].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        said.stdout.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    let whole = total(&[]);
    assert_eq!(whole, total(&["--by", "merged"]));
    assert_eq!(whole, total(&["--rank", "0", "--lane", "drafter:0"]));
    assert_eq!(whole, total(&["--window", "0s..3s"]) + total(&["--window", "3s.."]), "each iteration ends in one part");
    let last = total(&["--last", "1s"]);
    assert!(last > 900_000_000 && last < 1_100_000_000, "{last}");
    let said = dflash(dir.path(), &["flamegraph", "--time", "device"]);
    assert!(said.code == Some(2) && said.stderr.contains("no device time was recorded"), "{}", said.stderr);
    let said = dflash(dir.path(), &["flamegraph", "--lane", "nobody"]);
    assert!(said.code == Some(2) && said.stderr.contains("there is no lane `nobody`"), "{}", said.stderr);
}
