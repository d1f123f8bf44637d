//! Which rows a view shows, and in which order.

use std::cmp::Ordering;

use super::gpu::{Gpu, Sensor};
use super::model::Lane;
use super::{Baseline, Event, Queue, State, Thread, View};

/// More rows than this are shown worst first.
pub const MANY: usize = 16;

/// How a view is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sorting {
    /// Place in [`columns`].
    pub column: usize,
    /// The other way round.
    pub reversed: bool,
}

/// What a view can be sorted by; the first is how it is at first.
#[must_use]
pub fn columns(view: View) -> &'static [&'static str] {
    match view {
        View::Overview => &["usual", "name", "ms/it", "waits", "util", "temp"],
        View::Stages => &["pipeline", "share", "p50", "p95", "change", "name"],
        View::Queues => &["pipeline", "fill", "name"],
        View::Gpus => &["device", "util", "memory", "power", "temp", "throttle"],
        View::Threads => &["CPU", "name", "in span"],
        View::Events => &["newest", "kind"],
        View::Timeline | View::Training | View::Help => &[],
    }
}

/// A row of the overview: a lane with its GPU, or one of the two.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The lane.
    pub lane: Option<&'a Lane>,
    /// The GPU that it works on.
    pub gpu: Option<&'a Gpu>,
    /// A row above already shows this GPU.
    pub again: bool,
}

impl State {
    /// The rows of the overview.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        let model = &self.model;
        let gpu_of = |lane: &Lane| model.gpus.iter().find(|gpu| gpu.device == lane.device && gpu.rank == lane.rank);
        let mut rows: Vec<Row> =
            model.lanes.iter().map(|lane| Row { lane: Some(lane), gpu: gpu_of(lane), again: false }).collect();
        let alone = |gpu: &&Gpu| !model.lanes.iter().any(|lane| lane.device == gpu.device && lane.rank == gpu.rank);
        rows.extend(model.gpus.iter().filter(alone).map(|gpu| Row { lane: None, gpu: Some(gpu), again: false }));
        rows.retain(|row| {
            let names = [
                row.lane.map_or("", |lane| &lane.name),
                row.lane.map_or("", |lane| &lane.device),
                row.gpu.map_or("", |gpu| &gpu.device),
            ];
            self.shows(&names)
        });
        let many = rows.len() > MANY;
        self.sort(View::Overview, &mut rows, |column, a, b| match column {
            "name" => name_of(a).cmp(name_of(b)),
            "ms/it" => worse(milliseconds(a), milliseconds(b)),
            "waits" => worse(a.lane.and_then(Lane::waiting), b.lane.and_then(Lane::waiting)),
            "util" => worse(sensor(a, Sensor::Utilization), sensor(b, Sensor::Utilization)),
            "temp" => worse(sensor(a, Sensor::Temperature), sensor(b, Sensor::Temperature)),
            _ if many => worse(Some(badness(a)), Some(badness(b))),
            _ => Ordering::Equal,
        });
        let mut seen: Vec<*const Gpu> = Vec::new();
        for row in &mut rows {
            let Some(gpu) = row.gpu else { continue };
            row.again = seen.contains(&std::ptr::from_ref(gpu));
            seen.push(gpu);
        }
        rows
    }

    /// The GPUs as their view shows them.
    #[must_use]
    pub fn gpus(&self) -> Vec<&Gpu> {
        let mut gpus: Vec<&Gpu> = self.model.gpus.iter().filter(|gpu| self.shows(&[&gpu.device])).collect();
        let many = gpus.len() > MANY;
        self.sort(View::Gpus, &mut gpus, |column, a, b| match column {
            "util" => worse(a.now(Sensor::Utilization), b.now(Sensor::Utilization)),
            "memory" => worse(a.memory_share(), b.memory_share()),
            "power" => worse(a.power_share(), b.power_share()),
            "temp" => worse(a.now(Sensor::Temperature), b.now(Sensor::Temperature)),
            "throttle" => (b.is_slowed(), b.throttle()).cmp(&(a.is_slowed(), a.throttle())),
            _ if many => worse(Some(gpu_badness(a)), Some(gpu_badness(b))),
            _ => Ordering::Equal,
        });
        gpus
    }

    /// The threads as their view shows them.
    #[must_use]
    pub fn threads(&self) -> Vec<&Thread> {
        let inside = |thread: &Thread| thread.inside.clone().unwrap_or_default().0;
        let mut threads: Vec<&Thread> =
            self.model.threads.iter().filter(|thread| self.shows(&[&thread.name, &inside(thread)])).collect();
        let age = |thread: &Thread| thread.inside.as_ref().map(|(_, since)| since.as_secs_f64());
        self.sort(View::Threads, &mut threads, |column, a, b| match column {
            "name" => a.name.cmp(&b.name),
            "in span" => worse(age(a), age(b)),
            _ => worse(Some(a.cpu), Some(b.cpu)),
        });
        threads
    }

    /// The events as their view shows them.
    #[must_use]
    pub fn events(&self) -> Vec<&Event> {
        let mut events: Vec<&Event> =
            self.model.events.iter().filter(|event| self.shows(&[&event.text, event.kind.word()])).collect();
        self.sort(View::Events, &mut events, |column, a, b| match column {
            "kind" => a.kind.word().cmp(b.kind.word()),
            _ => b.after.cmp(&a.after),
        });
        events
    }

    /// The queues as their view shows them.
    #[must_use]
    pub fn queues(&self) -> Vec<&Queue> {
        let mut queues: Vec<&Queue> =
            self.model.queues.iter().filter(|queue| self.shows(&[&queue.row.queue])).collect();
        let fill = |queue: &Queue| Some(queue.row.mean / queue.top());
        self.sort(View::Queues, &mut queues, |column, a, b| match column {
            "fill" => worse(fill(a), fill(b)),
            "name" => a.row.queue.cmp(&b.row.queue),
            _ => Ordering::Equal,
        });
        queues
    }

    /// Whether a row with these texts passes the filter.
    #[must_use]
    pub fn shows(&self, texts: &[&str]) -> bool {
        let wanted = self.filter.to_lowercase();
        wanted.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&wanted))
    }

    /// What a view is sorted by.
    #[must_use]
    pub fn sorted_by(&self, view: View) -> Option<&'static str> {
        columns(view).get(self.sorting[view.index()].column).copied()
    }

    /// Whether a view is sorted the other way round.
    #[must_use]
    pub fn is_reversed(&self, view: View) -> bool {
        self.sorting[view.index()].reversed
    }

    /// Sorts so that equal rows keep their order.
    pub fn sort<T>(&self, view: View, rows: &mut [T], compare: impl Fn(&str, &T, &T) -> Ordering) {
        let column = self.sorted_by(view).unwrap_or_default();
        rows.sort_by(|a, b| compare(column, a, b));
        if self.is_reversed(view) {
            rows.reverse();
        }
    }

    /// The baseline, if numbers are compared to it.
    #[must_use]
    pub fn compared(&self) -> Option<&Baseline> {
        self.baseline.as_ref().filter(|_| self.comparing)
    }
}

/// The greater number first; what is not known last.
pub fn worse(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn name_of<'a>(row: &Row<'a>) -> &'a str {
    row.lane.map_or_else(|| row.gpu.map_or("", |gpu| &gpu.device), |lane| &lane.name)
}

/// Milliseconds of a lane's iteration.
pub fn milliseconds(row: &Row) -> Option<f64> {
    let table = row.lane?.table.as_ref().filter(|table| table.iterations > 0)?;
    Some(table.total.mean_ns / 1e6)
}

fn sensor(row: &Row, sensor: Sensor) -> Option<f64> {
    row.gpu.and_then(|gpu| gpu.now(sensor))
}

/// Lost and slowed GPUs first, then lanes that wait for nobody: they are what the others wait for.
fn badness(row: &Row) -> f64 {
    let waits = row.lane.and_then(Lane::waiting).map_or(0.0, |share| 1.0 - share.clamp(0.0, 1.0));
    row.gpu.map_or(0.0, gpu_badness) + waits
}

fn gpu_badness(gpu: &Gpu) -> f64 {
    let lost = if gpu.lost { 100.0 } else { 0.0 };
    let slowed = if gpu.is_slowed() { 10.0 } else { 0.0 };
    lost + slowed + gpu.heat().map_or(0.0, |heat| (1.0 - heat) * 0.1)
}
