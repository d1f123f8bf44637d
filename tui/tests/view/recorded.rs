//! From a run's directory to the screen: written with the profiler's own writer, read as `dflash top` reads it.

use std::path::Path;

use dflash_reports::timeline::metrics::MetricsWriter;
use dflash_reports::timeline::record::{CounterId, Iteration, LaneId, NameId, Sample, Span};
use dflash_reports::timeline::{Result, RunDir, SegmentWriter, State as RunState};
use dflash_tui::state::View;
use dflash_tui::view::adapt::{Charset, Colors};
use dflash_tui::{Options, frame, frame_svg, once};

use crate::synthetic::Scene;

/// Writes `scene` as a run below `parent`; `ended` with the end of its stream.
fn record(scene: &Scene, parent: &Path, ended: bool) -> Result<RunDir> {
    let run = RunDir::create(parent, "demo", scene.manifest.clone())?;
    let mut writer = SegmentWriter::create(&run, 0, 1 << 20)?;
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
    if ended {
        writer.end(&[], timeline.totals)?;
    } else {
        writer.flush(&[], timeline.totals)?;
    }
    let mut metrics = MetricsWriter::open(&run.metrics_csv(), 3)?;
    scene.metrics.iter().try_for_each(|row| metrics.write(row))?;
    Ok(run)
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
