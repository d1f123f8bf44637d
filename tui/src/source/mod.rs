//! Where the numbers come from: a run's directory, looked at again and again; without a run, this machine's GPUs.

mod alone;
mod governor;
mod keep;
mod metrics;
mod nvml;
mod past;
mod run;
mod several;

use std::time::{SystemTime, UNIX_EPOCH};

pub use alone::AloneSource;
pub use governor::Governor;
pub use nvml::Library;
pub use run::RunSource;
pub use several::SeveralSource;

use dflash_reports::stages::Window;
use dflash_reports::timeline::record::{Iteration, Kind, LaneId};
use dflash_reports::timeline::{RunDir, Timeline};
use dflash_reports::window::{Selection, TimeRange};

use crate::Result;
use crate::state::{Look, Model, extent};

/// What is looked at.
pub enum Source {
    /// A run.
    Run(Box<RunSource>),
    /// Several, as one.
    Several(Box<SeveralSource>),
    /// This machine's GPUs.
    Alone(Box<AloneSource>),
}

impl Source {
    /// Whether more may come.
    #[must_use]
    pub fn is_live(&self) -> bool {
        match self {
            Self::Run(source) => source.is_live(),
            Self::Several(source) => source.is_live(),
            Self::Alone(_) => true,
        }
    }

    /// Looks again; whether the numbers may have changed.
    pub fn poll(&mut self) -> bool {
        match self {
            Self::Run(source) => source.poll(),
            Self::Several(source) => source.poll(),
            Self::Alone(source) => {
                source.poll();
                true
            }
        }
    }

    /// A stretch of time on the recording's clock.
    ///
    /// # Errors
    /// When it is given by date, and no clock anchor says the date.
    pub fn place(&self, stretch: TimeRange) -> Result<Window> {
        let (timeline, whole) = match self {
            Self::Run(source) => (Some(source.timeline()), source.extent()),
            Self::Several(source) => (Some(source.timeline()), extent(source.timeline())),
            Self::Alone(_) => (None, None),
        };
        // Of a long run only a part is in memory: what counts is how long all of it is, and the date.
        let (begin_ns, end_ns) = whole.unwrap_or_default();
        let (lane, number, kind) = (LaneId(0), 0, Kind::Train);
        let duration_ns = end_ns.abs_diff(begin_ns);
        let iteration = Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns: None, tokens: None };
        let anchors = timeline.map_or_else(Vec::new, |timeline| timeline.anchors.clone());
        let frame = Timeline { iterations: vec![iteration], anchors, ..Timeline::default() };
        let selection = Selection { window: Some(stretch), ..Selection::default() };
        Ok(selection.resolve(&frame)?)
    }

    /// Begins to read what `look` asks for and is not in memory; whether all of it is there. Of several runs and of the
    /// GPUs alone, what is in memory is all there is.
    pub fn prepare(&mut self, look: &Look) -> bool {
        if let Self::Run(source) = self { source.prepare(look) } else { true }
    }

    /// Takes what was read meanwhile; whether there is something new to show.
    pub fn arrive(&mut self) -> bool {
        if let Self::Run(source) = self { source.arrive() } else { false }
    }

    /// Waits for what `look` asks for, and for what silent runs say of themselves.
    pub fn settle(&mut self, look: &Look) {
        match self {
            Self::Run(source) => source.settle(look),
            Self::Several(source) => source.settle(),
            Self::Alone(_) => {}
        }
    }

    /// The numbers of the last look.
    #[must_use]
    pub fn model(&self, look: &Look) -> Model {
        match self {
            Self::Run(source) => source.model(look),
            Self::Several(source) => source.model(look),
            Self::Alone(source) => source.model(look),
        }
    }

    /// Whom to ask for something: a process's run, and its rank in it.
    #[must_use]
    pub fn processes(&self) -> Vec<(RunDir, u32)> {
        match self {
            Self::Run(source) => source.processes(),
            Self::Several(source) => source.processes(),
            Self::Alone(_) => Vec::new(),
        }
    }
}

/// The time, nanoseconds since 1970.
pub fn now_unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}
