//! A run whose files are cut at every byte: each form says that something is missing, or a clear error does.

use crate::recorded::{Recipe, record};
use dflash_reports::report::{Charts, Report, figures_csv, html, markdown, stages_csv, table};
use dflash_reports::text::Look;
use dflash_reports::timeline::RunDir;
use dflash_reports::window::Selection;
use std::path::PathBuf;

/// Every form of the report, or its error.
fn forms(run: &RunDir) -> Result<(String, String), String> {
    let runs = std::slice::from_ref(run);
    let (report, merged) = Report::of_runs(runs, &Selection::default()).map_err(|error| error.to_string())?;
    let page = html(&report, &Charts::of(&report, &merged, runs));
    stages_csv(&report.stages).unwrap();
    figures_csv(&report).unwrap();
    assert!(!markdown(&report).is_empty());
    report.json().unwrap();
    Ok((table(&report, Look::default()), page))
}

fn only_segment(run: &RunDir) -> PathBuf {
    let mut segments = std::fs::read_dir(run.timeline_dir()).unwrap().map(|entry| entry.unwrap().path());
    let segment = segments.next().unwrap();
    assert!(segments.next().is_none());
    segment
}

#[test]
fn a_timeline_cut_at_every_byte_is_never_silently_complete() {
    let dir = tempfile::tempdir().unwrap();
    let run = record(dir.path(), &Recipe { iterations: 3, ..Recipe::default() });
    let segment = only_segment(&run);
    let whole = std::fs::read(&segment).unwrap();
    let (text, page) = forms(&run).unwrap();
    assert!(!text.contains("warning:") && !page.contains("class=\"warning\""), "{text}");
    for length in 0..whole.len() {
        std::fs::write(&segment, &whole[..length]).unwrap();
        match forms(&run) {
            Ok((text, page)) => {
                assert!(text.contains("warning: "), "{length} of {} bytes pass for all:\n{text}", whole.len());
                assert!(page.contains("class=\"warning\""), "{length}");
            }
            Err(error) => assert!(!error.is_empty(), "{length}"),
        }
    }
}

#[test]
fn one_flipped_byte_is_noticed_or_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let run = record(dir.path(), &Recipe { iterations: 2, ..Recipe::default() });
    let segment = only_segment(&run);
    let whole = std::fs::read(&segment).unwrap();
    let (good, _) = forms(&run).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&segment, &bytes).unwrap();
        if let Ok((text, _)) = forms(&run) {
            assert!(text == good || text.contains("warning: "), "byte {at}:\n{text}");
        }
    }
}

#[test]
fn other_files_cut_at_every_byte_give_an_answer_or_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let run = record(dir.path(), &Recipe { iterations: 2, ..Recipe::default() });
    for file in [run.metrics_csv(), run.path().join("run.json")] {
        let whole = std::fs::read(&file).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&file, &whole[..length]).unwrap();
            if let Err(error) = forms(&run) {
                assert!(error.contains("run.json"), "{length} bytes of {}: {error}", file.display());
            }
        }
        std::fs::write(&file, whole).unwrap();
    }
}
