//! CSV files whose errors help.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use dflash_timeline::iterations::read_iterations_noting;
use dflash_timeline::metrics::read_metrics_noting;
use dflash_timeline::record::Kind;
use dflash_timeline::{IterationRow, IterationsWriter, MetricsRow, MetricsWriter, read_iterations, read_metrics};

fn file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.csv");
    (directory, path)
}

fn rows() -> Vec<IterationRow> {
    let row = IterationRow {
        lane: "target:0".into(),
        device: "cuda:0".into(),
        iteration: 7,
        stage: "target.\"odd\", name\n".into(),
        start_ns: -5,
        host_ns: Some(123),
        ..IterationRow::default()
    };
    let total = IterationRow { kind: Kind::Eval, tokens: Some(0), device_ns: Some(u64::MAX), ..row.clone() };
    vec![row, IterationRow { host_ns: None, stage: "total".into(), ..total }]
}

#[test]
fn iterations_roundtrip_and_append() {
    let (_directory, path) = file();
    for _ in 0..2 {
        let mut writer = IterationsWriter::open(&path).unwrap();
        rows().iter().for_each(|row| writer.write(row).unwrap());
        writer.flush().unwrap();
    }
    assert_eq!(read_iterations(&path).unwrap(), [rows(), rows()].concat());
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("schema").count(), 1, "one header");
    assert!(text.contains("1,1,0,target:0,cuda:0,7,eval,total,-5,,18446744073709551615,0\n"), "{text}");
}

#[test]
fn metrics_roundtrip_with_columns_in_any_order() {
    let (_directory, path) = file();
    let full = MetricsRow {
        attempt: 1,
        step: 20,
        time_ns: 1_700_000_000_000_000_000,
        loss: Some(2.5),
        accuracy: Some(0.25),
        slots: vec![0.5, 0.125, 1e-9],
        learning_rate: Some(6e-4),
        gradient_norm: Some(1.0),
        acceptance_length: None,
        tokens_per_s: Some(1234.5),
        supervised_tokens_per_s: None,
        simulated_acceptance_length: Some(0.5625),
        block_acceptance_length: None,
        skipped: Some(3),
        slot_losses: vec![1.5, 2.0, 4.25],
    };
    let bare = MetricsRow { attempt: 1, step: 21, ..MetricsRow::default() };
    let mut writer = MetricsWriter::open(&path, 3).unwrap();
    writer.write(&full).unwrap();
    writer.write(&bare).unwrap();
    assert_eq!(read_metrics(&path).unwrap(), [full.clone(), bare]);
    let error = MetricsWriter::open(&path, 4).unwrap_err().to_string();
    assert!(error.contains("accuracy_4") && error.contains("move the file away"), "{error}");

    fs::write(
        &path,
        "step,note,time_ns,attempt,schema,loss,accuracy,learning_rate,gradient_norm,acceptance_length,\
        tokens_per_s,supervised_tokens_per_s\n20,mine,1700000000000000000,1,1,2.5,0.25,6e-4,1,,1234.5,\n",
    )
    .unwrap();
    assert_eq!(
        read_metrics(&path).unwrap(),
        [MetricsRow { slots: vec![], slot_losses: vec![], simulated_acceptance_length: None, skipped: None, ..full }]
    );
}

#[test]
fn a_torn_last_line_is_left_out_and_said() {
    let (_directory, path) = file();
    let mut writer = IterationsWriter::open(&path).unwrap();
    let plain = IterationRow { stage: "a".into(), ..rows()[0].clone() };
    (0..2).for_each(|_| writer.write(&plain).unwrap());
    writer.flush().unwrap();
    let whole = fs::read(&path).unwrap();
    let second = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').nth(1).unwrap().0 + 1;
    for length in second..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (rows, notice) = read_iterations_noting(&path).unwrap();
        assert_eq!(rows.len(), 1, "cut at {length}");
        assert_eq!(notice.is_some(), length > second, "cut at {length}");
        assert!(notice.is_none_or(|text| text.contains("it.csv:3: the last line is not complete")));
    }
    // A resumed run begins on a line of its own; the torn one stays, and is said where it stands.
    let mut writer = IterationsWriter::open(&path).unwrap();
    writer.write(&plain).unwrap();
    writer.flush().unwrap();
    assert!(fs::read_to_string(&path).unwrap().ends_with(",123,,\n"));
}

#[test]
fn errors_name_file_line_and_column() {
    let (_directory, path) = file();
    let header = "schema,attempt,rank,lane,device,iteration,kind,stage,start_ns,host_ns,device_ns,tokens\n";
    let good = "1,1,0,a,cpu,0,train,total,0,1,,\n";
    let says = |text: &str| {
        fs::write(&path, text).unwrap();
        let error = read_iterations(&path).unwrap_err().to_string();
        error.strip_prefix(path.to_str().unwrap()).expect("it names the file").to_owned()
    };
    insta::assert_snapshot!([
        says(""),
        says("schema,attempt\n1,1\n"),
        says(&format!("{header}{good}1,1,0,a,cpu,0,train,total,0,x,,\n")),
        says(&format!("{header}{good}{good}1,1,0,a,cpu,-1,train,total,0,1,,\n")),
        says(&format!("{header}1,1,0,a,cpu,0,test,total,0,1,,\n")),
        says(&format!("{header}\n\r\n{good}\n\n1,1,0,a,cpu\n")),
        says(&format!("{header}2,1,0,a,cpu,0,train,total,0,1,,\n")),
    ].join("\n"), @r"
    : column `schema` is missing; the header must be `schema,attempt,rank,lane,device,iteration,kind,stage,start_ns,host_ns,device_ns,tokens`
    : column `rank` is missing; the header must be `schema,attempt,rank,lane,device,iteration,kind,stage,start_ns,host_ns,device_ns,tokens`
    :3: column `host_ns`: `x` is not a whole number of nanoseconds; correct the line or remove it
    :4: column `iteration`: `-1` is not a whole number; correct the line or remove it
    :2: column `kind`: `test` is not one of train, warmup, checkpoint, eval, bare; correct the line or remove it
    :7: 5 fields where the header has 12; correct the line or remove it
    : written in format version 2, this dflash reads up to 1; update dflash
    ");
    File::create(&path)
        .unwrap()
        .write_all(&[header.as_bytes(), b"1,1,0,\xff,cpu,0,train,total,0,1,,\n"].concat())
        .unwrap();
    assert!(read_iterations(&path).unwrap_err().to_string().contains(":2: not UTF-8"));
    let missing = read_metrics_noting(&path.with_extension("none")).unwrap_err().to_string();
    assert!(missing.contains("it.none: cannot read it"), "{missing}");
}
