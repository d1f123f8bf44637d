//! What a run answers over its control socket, as text for people.

use crate::text::{Grid, Look, Style, UNKNOWN, duration, grouped, harmless};
use dflash_timeline::control::{CpuReport, LaneStatus, SpanAge, Status, ThreadStack};

/// Where a run stands.
#[must_use]
pub fn status(status: &Status, look: Look) -> String {
    let Status { pid, rank, attempt, run, .. } = status;
    let age = duration(status.age_ns);
    let head = format!("{}: process {pid}, rank {rank}, attempt {attempt}, recording for {age}", harmless(run));
    let mut text = look.paint(Style::Bold, &head) + "\n" + &facts(status);
    if let Some(trouble) = &status.trouble {
        text += &(look.paint(Style::Red, &format!("trouble: {}", harmless(trouble))) + "\n");
    }
    text.push('\n');
    text + &lanes(&status.lanes, look)
}

fn facts(status: &Status) -> String {
    let totals = &status.totals;
    let sampling = status.cpu_hz.map_or_else(|| "off".to_owned(), |hz| format!("{hz} a second"));
    let kernels = status.kernels.as_deref().map_or_else(|| "off".to_owned(), harmless);
    let requests = if status.takes_requests { "checkpoint, stop" } else { "none: this training takes none" };
    let cost = &status.cost;
    let share = if cost.process_cpu_ns == 0 {
        UNKNOWN.to_owned()
    } else {
        format!("{:.2} % of the process", cost.cpu_ns as f64 * 100.0 / cost.process_cpu_ns as f64)
    };
    [
        format!("level: {}, CPU sampling: {sampling}, kernel capture: {kernels}", harmless(&status.level)),
        format!(
            "records: {} made, {} written, {} dropped, {} spans open",
            grouped(totals.emitted),
            grouped(totals.written),
            grouped(totals.dropped),
            grouped(totals.open)
        ),
        format!("profiler: {} of CPU time ({share}), {} bytes written", duration(cost.cpu_ns), grouped(cost.bytes)),
        format!("requests: {requests}"),
    ]
    .map(|line| line + "\n")
    .concat()
}

fn lanes(lanes: &[LaneStatus], look: Look) -> String {
    if lanes.is_empty() {
        return "no lane works\n".to_owned();
    }
    let mut grid = Grid::default();
    grid.row(["lane", "device", "iteration", "kind", "lost", "in"], Some(Style::Dim));
    for lane in lanes {
        let iteration = lane.iteration.map_or_else(|| UNKNOWN.into(), grouped);
        let kind = lane.kind.map_or(UNKNOWN, |kind| kind.as_str());
        let spans: Vec<String> = lane.spans.iter().map(span).collect();
        let open = if spans.is_empty() { "no span".to_owned() } else { spans.join(" > ") };
        let (name, device) = (harmless(&lane.name), harmless(&lane.device));
        let style = (lane.dropped > 0).then_some(Style::Yellow);
        grid.row([name, device, iteration, kind.to_owned(), grouped(lane.dropped), open], style);
    }
    grid.text("", true, look)
}

/// Every thread's stack, as `py-spy dump` prints it: innermost first.
#[must_use]
pub fn stacks(threads: &[ThreadStack], look: Look) -> String {
    threads.iter().map(|thread| stack(thread, look) + "\n").collect()
}

fn stack(thread: &ThreadStack, look: Look) -> String {
    let lane = thread.lane.as_ref().map(|lane| format!(" lane {}", harmless(lane))).unwrap_or_default();
    let head = format!("Thread {} ({}): \"{}\"{lane}", thread.tid, harmless(&thread.state), harmless(&thread.name));
    let style = if thread.state == "running" { Style::Green } else { Style::Bold };
    let mut text = look.paint(style, &head) + "\n";
    if let Some(note) = &thread.note {
        text += &format!("    ({})\n", harmless(note));
    }
    for frame in &thread.frames {
        text += &format!("    {}\n", harmless(frame));
    }
    for open in thread.spans.iter().rev() {
        text += &look.paint(Style::Yellow, &format!("    in {}", span(open)));
        text.push('\n');
    }
    text
}

fn span(span: &SpanAge) -> String {
    let age =
        if span.age_ns < 1_000_000_000 { format!("{:.1} ms", span.age_ns as f64 / 1e6) } else { duration(span.age_ns) };
    format!("{} for {age}", harmless(&span.name))
}

/// What became of sampling CPU time, as one line.
#[must_use]
pub fn cpu(report: &CpuReport) -> String {
    harmless(&report.text) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use dflash_timeline::record::{Kind, Totals};

    fn open(name: &str, age_ns: u64) -> SpanAge {
        SpanAge { name: name.into(), age_ns }
    }

    #[test]
    fn a_status() {
        let mut now = Status { pid: 7, run: "runs/a".into(), attempt: 1, age_ns: 83_000_000_000, ..Status::default() };
        now.level = "stages".into();
        now.totals = Totals { emitted: 1_234_567, written: 1_234_000, dropped: 567, open: 2, ..Totals::default() };
        now.trouble = Some("the timeline is no longer written: No space left on device".into());
        now.cost.cpu_ns = 120_000_000;
        now.cost.process_cpu_ns = 60_000_000_000;
        let spans = vec![open("drafter.forward", 2_500_000_000), open("drafter.layer", 12_300_000)];
        now.lanes.push(LaneStatus {
            name: "drafter:0".into(),
            device: "cuda:0".into(),
            iteration: Some(1017),
            kind: Some(Kind::Train),
            spans,
            dropped: 567,
            ..LaneStatus::default()
        });
        now.lanes.push(LaneStatus { name: "lo\u{1b}ader".into(), device: "cpu".into(), ..LaneStatus::default() });
        insta::assert_snapshot!(status(&now, Look::default()), @r#"
        runs/a: process 7, rank 0, attempt 1, recording for 1 min 23 s
        level: stages, CPU sampling: off, kernel capture: off
        records: 1,234,567 made, 1,234,000 written, 567 dropped, 2 spans open
        profiler: 0.1 s of CPU time (0.20 % of the process), 0 bytes written
        requests: none: this training takes none
        trouble: the timeline is no longer written: No space left on device

        lane       device  iteration   kind  lost  in
        drafter:0  cuda:0      1,017  train   567  drafter.forward for 2.5 s > drafter.layer for 12.3 ms
        lo�ader       cpu        N/A    N/A     0  no span
        "#);
    }

    #[test]
    fn stacks_innermost_first() {
        let thread = ThreadStack {
            name: "drafter:0".into(),
            tid: 4711,
            state: "sleeping".into(),
            lane: Some("drafter:0".into()),
            spans: vec![open("drafter.backward", 12_300_000), open("sync.metrics", 1_500_000_000)],
            frames: vec!["__futex_wait".into(), "at::native::\u{1b}item".into()],
            ..ThreadStack::default()
        };
        let (name, note) = ("pool".into(), Some("did not answer within 200 ms".into()));
        let bare = ThreadStack { name, tid: 4712, state: "running".into(), note, ..ThreadStack::default() };
        insta::assert_snapshot!(stacks(&[thread, bare], Look::default()), @r#"
        Thread 4711 (sleeping): "drafter:0" lane drafter:0
            __futex_wait
            at::native::�item
            in sync.metrics for 1.5 s
            in drafter.backward for 12.3 ms

        Thread 4712 (running): "pool"
            (did not answer within 200 ms)
        "#);
    }
}
