//! report, flamegraph, runs, dump.

use super::support::{dflash, recorded_run};

#[test]
fn the_report_of_the_newest_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "demo", 1.0);
    let said = dflash(dir.path(), &["report"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    assert!(!said.stdout.contains('\u{1b}'), "no colour into a pipe");
    insta::assert_snapshot!(said.stdout.replace(&run.name(), "RUN"), @r"
    run RUN · finished · 9.1 s · 2,116 tokens/s · tau 1.91
    which side limits is unknown: no two kinds of lanes record *.wait or *.put

    drafter:0 on cpu: 300 iterations, CPU 25.0 %
      stage             clock  count  total s  mean ms  p50 ms  p90 ms  p95 ms  p99 ms  max ms    share  hint
      drafter.wait      host     300     0.31    1.050   1.050   1.090   1.095   1.099   1.100    3.5 %        ▎
      drafter.forward   host     300     2.71    9.050   9.050   9.090   9.095   9.099   9.100   29.9 %        ██▍
      drafter.backward  host     300     6.01   20.050  20.050  20.090  20.095  20.099  20.100   66.3 %        █████▎
      residue           host     300     0.03    0.100   0.100   0.100   0.100   0.100   0.100    0.3 %
      total             host     300     9.07   30.250  30.250  30.370  30.385  30.397  30.400  100.0 %

    records: 1,200 written, 0 dropped, 0 open, 0 negative, 0 unresolved, 0 misplaced

    goodput
      drafters' time         s    share
      productive          8.76   96.5 %
      warm-up             0.00    0.0 %
      checkpoint          0.00    0.0 %
      eval                0.00    0.0 %
      stalled             0.31    3.5 %
      lost to a restart   0.00    0.0 %
      between iterations  0.00    0.0 %
      total               9.07  100.0 %

    the profiler itself
      cost by lane N/A (no counter profiler.cost.*, no bare iterations)
      CPU of all threads of the profiler: N/A of one core
    ");
    let by_name = dflash(dir.path(), &["report", &run.name()]);
    assert_eq!(by_name.stdout, said.stdout);
}

#[test]
fn csv_files_into_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "demo", 1.0);
    let said = dflash(dir.path(), &["report", "--format", "csv", "-o", "out/"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    let read = |name: &str| std::fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    assert_eq!(read("stages.csv").lines().count(), 1 + 3 + 2);
    assert_eq!(read("iterations.csv").lines().count(), 1 + 300 * 5);
    assert!(read("figures.csv").contains("\n1,losses,0,,,,written,1200\n"));
    assert_eq!(dflash(dir.path(), &["report", "--format", "csv"]).stdout, read("stages.csv"));
    let again = dflash(dir.path(), &["report", "--format", "csv", "-o", "out/"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("out/stages.csv exists; name another file, or overwrite it with --force"));
    assert_eq!(dflash(dir.path(), &["report", "--format", "csv", "-o", "out/", "--force"]).code, Some(0));
    let names: Vec<_> = std::fs::read_dir(dir.path().join("out")).unwrap().collect();
    assert_eq!(names.len(), 3, "nothing is left beside the files");
}

#[test]
fn csv_of_a_part_and_of_a_file_that_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "demo", 1.0);
    let rows = |arguments: &[&str]| {
        let said = dflash(dir.path(), &[&["report", "--format", "csv", "-o", "out/", "--force"], arguments].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        (std::fs::read_to_string(dir.path().join("out/iterations.csv")).unwrap().lines().count() - 1, said.stderr)
    };
    assert_eq!(rows(&["--lane", "drafter:0"]), (300 * 5, String::new()));
    let whole = std::fs::read_to_string(run.iterations_csv()).unwrap();
    std::fs::write(run.iterations_csv(), &whole[..whole.len() - 3]).unwrap();
    let (left, said) = rows(&[]);
    assert_eq!(left, 299 * 5);
    assert!(said.contains("2 lines of iterations.csv are not whole and were left out"), "{said}");
    assert!(said.contains("iterations.csv holds 299 iterations, the timeline 1 more"), "{said}");
}

#[test]
fn a_part_of_a_run_by_time() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "demo", 1.0);
    let iterations = |arguments: &[&str]| {
        let said = dflash(dir.path(), &[&["report", "--format", "json"], arguments].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        json["stages"]["lanes"][0]["iterations"].as_u64()
    };
    assert_eq!(iterations(&[]), Some(300));
    assert_eq!(iterations(&["--window", "..3s"]).zip(iterations(&["--window", "3s.."])).map(|(a, b)| a + b), Some(300));
    let last = iterations(&["--last", "3s"]).unwrap();
    assert!((95..=105).contains(&last), "30 ms each: {last}");
    assert_eq!(iterations(&["--window", "1h.."]), None);
    let empty = dflash(dir.path(), &["report", "--window", "1h.."]);
    assert!(empty.stdout.contains("no finished iteration was recorded in this stretch of time"), "{}", empty.stdout);
    for wrong in
        [&["--last", "60"][..], &["--window", "2m..1m"], &["--rank", "7"], &["--lane", "x"], &["--last", "nan"]]
    {
        let said = dflash(dir.path(), &[&["report"], wrong].concat());
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{wrong:?}");
    }
    let twice = dflash(dir.path(), &["report", &run.name(), &format!("runs/{}", run.name())]);
    assert_eq!(twice.code, Some(2));
    assert!(twice.stderr.contains("is named twice; name each run once"), "{}", twice.stderr);
}

#[test]
fn the_other_forms_are_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "demo", 1.0);
    let json: serde_json::Value =
        serde_json::from_str(&dflash(dir.path(), &["report", "--format", "json"]).stdout).unwrap();
    assert_eq!(json["run"]["tau"], 1.91);
    assert_eq!(json["stages"]["lanes"][0]["iterations"], 300);
    assert!(dflash(dir.path(), &["report", "--format", "md"]).stdout.contains("| drafter.forward | host | 300 |"));
    let runs = dflash(dir.path(), &["runs"]).stdout;
    assert!(runs.contains("finished") && runs.contains("1 min 30 s") && runs.contains("1.91"), "{runs}");
    assert_eq!(dflash(dir.path(), &["dump"]).stdout.lines().filter(|line| line.starts_with("span ")).count(), 900);
    assert!(dflash(dir.path(), &["dump", "--totals"]).stdout.starts_with("read lanes=1 iterations=300 spans=900"));
}

#[test]
fn a_flame_graph_is_written_once() {
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "demo", 1.0);
    let said = dflash(dir.path(), &["flamegraph", "-o", "x.svg"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    let svg = std::fs::read_to_string(dir.path().join("x.svg")).unwrap();
    assert!(svg.starts_with("<?xml") && svg.contains("<title>drafter.backward ("), "{}", &svg[..200]);
    assert_eq!(dflash(dir.path(), &["flamegraph", "-o", "x.svg"]).code, Some(2));
    let folded = dflash(dir.path(), &["flamegraph", "--format", "folded"]).stdout;
    let sum: u64 = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    let json: serde_json::Value =
        serde_json::from_str(&dflash(dir.path(), &["report", "--format", "json"]).stdout).unwrap();
    assert_eq!(json["stages"]["lanes"][0]["total"]["total_ns"], sum);
}

#[test]
fn a_kernel_capture_in_the_run_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "demo", 1.0);
    assert!(!dflash(dir.path(), &["report"]).stdout.contains("kernel capture"));
    let kernel = r#"{"cat": "kernel", "ts": 5.0, "dur": 2.5, "args": {"device": 0, "stream": 7}}"#;
    std::fs::write(run.path().join("kernels-0-1.json"), format!("{{\"traceEvents\": [{kernel}]}}")).unwrap();
    let said = dflash(dir.path(), &["report"]);
    assert_eq!(said.code, Some(0));
    assert!(said.stdout.contains("kernel capture kernels-0-1.json\n"), "{}", said.stdout);
    assert!(said.stdout.contains("1 kernels, copies and fills; 0 discarded"), "{}", said.stdout);
    std::fs::write(run.path().join("kernels-0-1.json"), "no trace").unwrap();
    assert!(dflash(dir.path(), &["report"]).stdout.contains("warning: kernels-0-1.json: torn"));
}

#[test]
fn without_cpu_samples_it_says_how_to_take_them() {
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "demo", 1.0);
    let said = dflash(dir.path(), &["flamegraph", "--time", "cpu", "-o", "x.svg"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("no CPU sample was recorded") && said.stderr.contains("dflash ctl cpu"),
        "{}",
        said.stderr
    );
    assert!(!dir.path().join("x.svg").exists());
}

#[test]
fn reading_leaves_the_run_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "demo", 1.0);
    let state = || {
        let files = std::fs::read_dir(run.path()).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = files.map(|f| (f.file_name(), f.metadata().unwrap().modified().unwrap())).collect();
        files.sort();
        files
    };
    let before = state();
    for command in ["report", "flamegraph", "runs", "dump"] {
        assert_eq!(dflash(dir.path(), &[command]).code, Some(0), "{command}");
    }
    assert_eq!(state(), before);
}
