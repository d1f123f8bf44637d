//! From a run's directory to the screen: written with the profiler's own writer, read as `dflash top` reads it.

use std::path::Path;

use dflash_reports::timeline::metrics::MetricsWriter;
use dflash_reports::timeline::record::{CounterId, Iteration, LaneId, NameId, Sample, Span};
use dflash_reports::timeline::{Result, RunDir, SegmentWriter, State as RunState, StreamOptions};
use dflash_tui::state::View;
use dflash_tui::view::adapt::{Charset, Colors};
use dflash_tui::{Options, Subject, frame, frame_svg, once};

use crate::synthetic::Scene;

/// Writes `scene` as a run below `parent`; `ended` with the end of its stream.
fn record(scene: &Scene, parent: &Path, ended: bool) -> Result<RunDir> {
    let run = RunDir::create(parent, "demo", scene.manifest.clone())?;
    record_timeline(scene, &run, 0, ended)?;
    let mut metrics = MetricsWriter::open(&run.metrics_csv(), 3)?;
    scene.metrics.iter().try_for_each(|row| metrics.write(row))?;
    Ok(run)
}

fn record_timeline(scene: &Scene, run: &RunDir, rank: u32, ended: bool) -> Result<()> {
    write_timeline(scene, SegmentWriter::create(run, rank, 1 << 20)?, ended)
}

fn write_timeline(scene: &Scene, mut writer: SegmentWriter, ended: bool) -> Result<()> {
    let timeline = &scene.timeline;
    let names: Vec<NameId> = timeline.names.iter().map(|name| writer.name(name)).collect();
    let lanes: Vec<LaneId> = timeline.lanes.iter().map(|lane| writer.lane(lane)).collect();
    let counters: Vec<CounterId> = timeline.counters.iter().map(|counter| writer.counter(counter)).collect();
    timeline.anchors.iter().for_each(|anchor| writer.anchor(anchor));
    for span in &timeline.spans {
        writer.span(&Span { name: names[span.name.0 as usize], lane: lanes[span.lane.0 as usize], ..*span })?;
    }
    writer.flush(&[], timeline.totals)?;
    for iteration in &timeline.iterations {
        let lane = lanes[iteration.lane.0 as usize];
        writer.iteration(&Iteration { lane, ..*iteration })?;
    }
    for sample in &timeline.samples {
        let counter = counters[sample.counter.0 as usize];
        writer.sample(&Sample { counter, ..*sample })?;
    }
    if ended { writer.end(&[], timeline.totals).map(drop) } else { writer.flush(&[], timeline.totals) }
}

/// Two machines of one training write a run each, and one machine's two processes write into one.
#[test]
fn ranks_of_several_runs_and_of_one_stand_side_by_side() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let scene = Scene::gpus(2).ended(RunState::Finished, true);
    let run = |place: &str| record(&scene, &parent.path().join(place), true).expect("a run can be written");
    let (first, second) = (run("a"), run("b"));
    let mut options = Options::default();
    options.view = Some(View::Gpus);
    let text = once(Subject::Runs(vec![first.clone(), second.clone()]), &options).expect("both can be read");
    for gpu in ["cuda:0 ", "cuda:1 ", "cuda:0 r1 ", "cuda:1 r1 "] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(gpu)), "no {gpu}in\n{text}");
    }
    let overview = once(Subject::Runs(vec![first.clone(), second.clone()]), &Options::default()).expect("text");
    assert!(overview.contains("drafter:0 r1") && overview.contains(" + "), "{overview}");
    // The same as ranks of one run.
    let mut other = scene;
    other.timeline.lanes.iter_mut().for_each(|lane| lane.rank = 1);
    other.timeline.counters.iter_mut().for_each(|counter| counter.rank = 1);
    record_timeline(&other, &first, 1, true).expect("another rank can be written");
    let text = once(first, &options).expect("it can be read");
    for gpu in ["cuda:0 ", "cuda:1 ", "cuda:0 r1 ", "cuda:1 r1 "] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(gpu)), "no {gpu}in\n{text}");
    }
}

#[test]
fn what_keep_has_deleted_is_said_and_is_no_loss() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let mut scene = Scene::gpus(8).ended(RunState::Finished, true);
    scene.manifest.state = RunState::Finished;
    let run = RunDir::create(parent.path(), "kept", scene.manifest.clone()).expect("a run can be written");
    let options = StreamOptions { segment_bytes: 1 << 14, keep_bytes: Some(1 << 16), sync_every: None };
    let writer = SegmentWriter::with_options(&run, 0, &options).expect("a writer");
    write_timeline(&scene, writer, true).expect("it can be written");
    let text = text(run);
    let line = text.lines().nth(1).unwrap_or_default();
    assert!(line.contains("lost 0") && line.contains("detail from "), "{line}");
    assert!(line.contains(" kB, deleted by keep)"), "{line}");
}

fn text(run: RunDir) -> String {
    once(run, &Options::default()).expect("a run that was just written can be read")
}

#[test]
fn a_finished_run_as_text() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let mut scene = Scene::pipeline().ended(RunState::Finished, true);
    scene.manifest.state = RunState::Finished;
    let run = record(&scene, parent.path(), true).expect("a run can be written");
    let text = text(run);
    // Nothing in it depends on the day of the test.
    insta::assert_snapshot!(text);
}

#[test]
fn a_live_run_is_alive_and_a_torn_one_torn() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let mut scene = Scene::pipeline();
    (scene.manifest.host, scene.manifest.pid) = (String::new(), 0);
    let run = record(&scene, parent.path(), false).expect("a run can be written");
    let live = text(run.clone());
    assert!(live.contains(&format!("running, pid {} alive   lost 0", std::process::id())), "{live}");
    let mut manifest = run.manifest().expect("a manifest");
    manifest.state = RunState::Failed;
    run.write_manifest(&manifest).expect("a manifest can be written");
    let failed = text(run);
    assert!(failed.contains("failed   torn"), "{failed}");
}

#[test]
fn damage_and_a_malformed_metrics_csv_are_shown_not_fatal() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let run = record(&Scene::pipeline(), parent.path(), true).expect("a run can be written");
    let metrics = run.metrics_csv();
    let rows = std::fs::read_to_string(&metrics).expect("metrics");
    std::fs::write(&metrics, rows.replacen("1,1,3,", "1,1,x,", 1)).expect("metrics can be written");
    for segment in std::fs::read_dir(run.timeline_dir()).expect("a timeline") {
        let path = segment.expect("a segment").path();
        let mut bytes = std::fs::read(&path).expect("bytes");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        std::fs::write(path, bytes).expect("bytes can be written");
    }
    let text = text(run);
    assert!(text.contains("1 bad block"), "{text}");
    assert!(text.contains("metrics.csv:5: column `step`: `x`"), "{text}");
}

#[test]
fn a_frame_becomes_a_picture() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let run = record(&Scene::pipeline(), parent.path(), true).expect("a run can be written");
    let mut options = Options::default();
    options.size = (120, Some(36));
    let svg = frame_svg(&frame(run.clone(), &options).expect("a frame"));
    assert!(svg.contains(">backward") && svg.contains("#d55e00"), "{svg}");
    options.charset = Charset { colors: Colors::None, unicode: false, light: false };
    options.view = Some(View::Stages);
    let plain = frame_svg(&frame(run, &options).expect("a frame"));
    assert!(!plain.contains("#d55e00") && plain.is_ascii());
}
