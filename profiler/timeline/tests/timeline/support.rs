//! A small recording, and its only segment's bytes.

use std::fs;
use std::path::PathBuf;

use dflash_timeline::record::{
    Anchor, Awaited, Counter, DeviceAnchor, DeviceTime, Flow, FlowEnd, Iteration, Kind, Lane, LaneTotals, LaterTime,
    Mark, OpenSpan, Sample, Severity, Span, StackSample, Stream, Totals,
};
use dflash_timeline::{Manifest, RunDir, SegmentWriter, Timeline, read};

pub const SEGMENT: u64 = 64 << 20;

pub struct Run {
    pub dir: RunDir,
    _directory: tempfile::TempDir,
}

impl Run {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let dir = RunDir::create(directory.path(), "test", Manifest::default()).unwrap();
        Self { dir, _directory: directory }
    }

    pub fn segment(&self, number: u32) -> PathBuf {
        self.dir.timeline_dir().join(format!("rank0-{number:06}.dft"))
    }

    /// The first segment's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.segment(1)).unwrap()
    }

    /// Puts other bytes in its place, and reads them.
    pub fn read_as(&self, bytes: &[u8]) -> Timeline {
        fs::write(self.segment(1), bytes).unwrap();
        read(&self.dir).unwrap()
    }
}

/// Three blocks of two lanes with every record in it, and END.
pub fn small(run: &Run) -> Totals {
    small_of(run, 0, 0, None)
}

/// The same of any rank, whose clock lags `lag_ns` behind, and which may say how far its clock is off.
pub fn small_of(run: &Run, rank: u32, lag_ns: i64, offset: Option<(i64, u64)>) -> Totals {
    let mut writer = SegmentWriter::create(&run.dir, rank, SEGMENT).unwrap();
    let [target, drafter] = [("target:0", "cuda:0"), ("drafter:0", "cpu")]
        .map(|(name, device)| writer.lane(&Lane { name: name.into(), device: device.into(), rank }));
    let [forward, loss] = ["target.forward", "drafter.loss"].map(|name| writer.name(name));
    let [device, thread, main, step] = ["cuda:0", "autograd 0", "main", "step"].map(|name| writer.name(name));
    let stream = writer.stream(&Stream { device: "cuda:0".into(), number: 7, rank });
    let depth = writer.counter(&Counter { name: "queue.depth".into(), unit: "items".into(), rank });
    writer.anchor(&Anchor { monotonic_ns: 1_000 - lag_ns, realtime_ns: 1_700_000_000_000_000_000 });
    writer.device_anchor(&DeviceAnchor { device, device_ns: -7, host_ns: 1_500 - lag_ns, uncertainty_ns: 40 });
    if let Some((offset, uncertainty)) = offset {
        for (name, value) in [("clock.offset", offset as f64), ("clock.uncertainty", uncertainty as f64)] {
            let counter = writer.counter(&Counter { name: name.into(), unit: "ns".into(), rank });
            writer.sample(&Sample { counter, time_ns: 9_000 - lag_ns, value }).unwrap();
        }
    }
    for number in 0..2_u64 {
        let begin_ns = 10_000 + 5_000 * number as i64 - lag_ns;
        let device =
            Some(DeviceTime { begin_ns: begin_ns + 30, duration_ns: 3_900, stream: (number == 1).then_some(stream) });
        let (iteration, index) = (Some(number), (number == 1).then_some(300));
        let span =
            Span { name: forward, lane: target, iteration, index, depth: 0, begin_ns, duration_ns: 4_000, device };
        writer.span(&span).unwrap();
        writer.span(&Span { name: loss, lane: drafter, depth: 9, device: None, iteration: None, ..span }).unwrap();
        let (cpu_ns, tokens) = (Some(3_000), (number == 0).then_some(512));
        let kind = if number == 0 { Kind::Warmup } else { Kind::Train };
        writer
            .iteration(&Iteration { lane: target, number, kind, begin_ns, duration_ns: 4_500, cpu_ns, tokens })
            .unwrap();
        writer.flow(&Flow { id: number, end: FlowEnd::Put, lane: target, time_ns: begin_ns + 4_200 }).unwrap();
        writer.flow(&Flow { id: number, end: FlowEnd::Take, lane: drafter, time_ns: begin_ns + 4_300 }).unwrap();
        writer.sample(&Sample { counter: depth, time_ns: begin_ns, value: number as f64 / 2.0 }).unwrap();
        let (lane, iteration) = if number == 0 { (Some(drafter), Some(number)) } else { (None, None) };
        let (spans, frames) = (vec![loss; number as usize], vec![main, step]);
        writer.stack(&StackSample { time_ns: begin_ns, tid: 99, thread, lane, iteration, spans, frames }).unwrap();
        writer.lane_totals(&LaneTotals { lane: target, emitted: 4 * number + 3, written: 4 * number + 2, dropped: 1 });
        writer.flush(&[OpenSpan { name: loss, lane: drafter, begin_ns: 20_000 - lag_ns }], Totals::default()).unwrap();
    }
    if rank > 0 {
        writer.awaited(&Awaited { lane: drafter, from_ns: Some(20_000 - lag_ns) });
        let (begin_ns, iteration, index) = (21_000 - lag_ns, Some(2), None);
        let late =
            Span { name: loss, lane: drafter, iteration, index, depth: 0, begin_ns, duration_ns: 9, device: None };
        writer.span(&late).unwrap();
        writer.flush(&[], Totals::default()).unwrap();
        let device = DeviceTime { begin_ns: 24_000 - lag_ns, duration_ns: 7, stream: Some(stream) };
        writer.later(drafter, &[LaterTime { lane: drafter, begin_ns, device }]).unwrap();
    }
    writer.mark(&Mark { time_ns: 30_000 - lag_ns, severity: Severity::Warning, text: "queue full".into() }).unwrap();
    let totals = Totals { emitted: 16, dropped: 1, misplaced: 2, ..Totals::default() };
    let open = OpenSpan { name: loss, lane: drafter, begin_ns: 29_000 - lag_ns };
    writer.end(&[open][..usize::from(rank > 0)], totals).unwrap()
}
