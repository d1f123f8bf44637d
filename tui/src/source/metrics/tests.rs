use std::fs;

use dflash_reports::timeline::MetricsWriter;

use super::*;

fn row(step: u64) -> MetricsRow {
    let tau = step.is_multiple_of(500).then_some(1.5);
    MetricsRow {
        attempt: 1,
        step,
        time_ns: step as i64,
        loss: Some(1.0 / (step + 1) as f64),
        slots: vec![0.5, 0.25],
        acceptance_length: tau,
        ..MetricsRow::default()
    }
}

#[test]
fn it_reads_what_the_files_own_reader_reads() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("metrics.csv");
    let mut metrics = Metrics::of(path.clone());
    metrics.poll().expect("a file that is not there yet is no error");
    let mut writer = MetricsWriter::open(&path, 2).expect("a file");
    for step in 0..100 {
        writer.write(&row(step)).expect("a row");
        if step % 7 == 0 {
            metrics.poll().expect("rows");
        }
    }
    metrics.poll().expect("rows");
    assert_eq!(metrics.rows(), timeline::read_metrics(&path).expect("rows"));
}

#[test]
fn a_long_file_is_thinned_and_its_newest_row_is_there() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("metrics.csv");
    let mut writer = MetricsWriter::open(&path, 2).expect("a file");
    let mut metrics = Metrics::of(path);
    for step in 0..20_000 {
        writer.write(&row(step)).expect("a row");
        if step % 3000 == 2999 {
            metrics.poll().expect("rows");
            assert_eq!(metrics.rows().last().map(|row| row.step), Some(step));
        }
    }
    metrics.poll().expect("rows");
    assert_eq!((metrics.logged(), metrics.rows().last().map(|row| row.step)), (Some(20_000), Some(19_999)));
    assert!(metrics.rows().len() <= MOST && metrics.rows().len() > MOST / 4, "{}", metrics.rows().len());
    assert!(metrics.rows().is_sorted_by_key(|row| row.step));
    assert_eq!(metrics.rows().first().map(|row| row.step), Some(0));
}

#[test]
fn of_a_file_that_is_long_already_some_rows_are_read_and_the_newest() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("metrics.csv");
    MetricsWriter::open(&path, 0).and_then(|mut writer| writer.write(&row(0))).expect("a file");
    let mut text = fs::read_to_string(&path).expect("text");
    let count = 300_000;
    let empty = ",".repeat(text.lines().next().map_or(0, |header| header.split(',').count()) - 6);
    let line = |step: u64, loss: f64, last: &str| format!("1,1,{step},{step},{loss}{empty},{last}\n");
    for step in 1..count {
        text += &line(step, 0.5, "");
    }
    assert!(text.len() as u64 > LONG / 2);
    text += &line(300_000, 0.25, "3400.123456789").repeat(text.len() / 40);
    fs::write(&path, &text).expect("a file");
    let mut metrics = Metrics::of(path.clone());
    metrics.poll().expect("rows");
    assert_eq!((metrics.logged(), metrics.rows().first().map(|row| row.step)), (None, Some(0)));
    assert!(metrics.rows().is_sorted_by_key(|row| row.step) && metrics.rows().len() <= MOST);
    assert!(metrics.rows().iter().filter(|row| row.step < count).count() > 100);
    fs::write(&path, text + &line(300_001, 0.125, "")).expect("a file");
    metrics.poll().expect("rows");
    assert_eq!(metrics.rows().last().and_then(|row| row.loss), Some(0.125));
}

#[test]
fn a_line_that_is_being_written_waits_and_a_wrong_one_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("metrics.csv");
    MetricsWriter::open(&path, 0).and_then(|mut writer| writer.write(&row(7))).expect("a file");
    let text = fs::read_to_string(&path).expect("text");
    let (whole, part) = text.split_at(text.len() - 5);
    fs::write(&path, whole).expect("a file");
    let mut metrics = Metrics::of(path.clone());
    metrics.poll().expect("half a line is no error");
    assert_eq!(metrics.rows().len(), 0);
    fs::write(&path, format!("{whole}{part}")).expect("a file");
    metrics.poll().expect("rows");
    assert_eq!(metrics.rows(), [MetricsRow { slots: Vec::new(), ..row(7) }]);
    fs::write(&path, text.replace("1,1,7,", "1,1,seven,") + "1,2\n").expect("a file");
    let said = metrics.poll().expect_err("a word is no number").to_string();
    assert!(said.contains("metrics.csv:") && metrics.rows().len() == 1, "{said}");
}
