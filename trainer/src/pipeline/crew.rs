//! Puts the lanes together, and takes them apart again whatever happens.

use super::collective::{Across, Collective, Ranked, Threads};
use super::drafter_loop::{self, DrafterTrainLoop, Learnt, Made};
use super::order::Order;
use super::parts::Stop;
use super::post_loop::{self, PostLoop};
use super::shared::{Failure, Shared};
use super::target_loop::{self, TargetForwardLoop, Then};
use super::work::World;
use super::{lane, loader};
use crate::config::OnStop;
use crate::error::TrainError;
use crate::events::MetricsLog;
use dflash_profiler::Lane;
use std::sync::PoisonError;
use std::thread::{Scope, ScopedJoinHandle};

/// Everyone who works.
pub(super) struct Crew<W: World> {
    pub(super) loader: W::Load,
    pub(super) targets: Vec<TargetWorker<W>>,
    pub(super) drafters: Vec<(String, W::Drafter)>,
}

/// A target, and what follows it.
pub(super) struct TargetWorker<W: World> {
    /// Name of its device.
    pub(super) device: String,
    pub(super) target: W::Target,
    pub(super) post: W::Post,
}

/// What they leave.
pub(super) struct Worked<W: World> {
    pub(super) drafters: Vec<W::Drafter>,
    pub(super) steps: usize,
    /// Context tokens a second over the whole loop, of all drafters, without padding; evaluations left out.
    pub(super) tokens_per_s: f64,
    /// Each lane's loop, in seconds by a clock that is not the profiler's.
    pub(super) loop_seconds: Vec<(String, f64)>,
}

/// Makes a lane for a worker on a device.
pub(super) type MakeLane<'a> = &'a (dyn Fn(&str, &str) -> Lane + Sync);

/// Works until the steps are made, `stop` is set, or a lane fails.
///
/// # Errors
/// [`TrainError::Lane`] names the lane that failed first and why; the other lanes have ended by then.
pub(super) fn work<W: World>(
    shared: &Shared<'_, W>,
    crew: Crew<W>,
    (order, batch): (Order, usize),
    (across, csv): (Option<Across>, Option<MetricsLog>),
    stop: Stop<'_>,
    make: MakeLane<'_>,
) -> Result<Worked<W>, TrainError> {
    let members = group(shared, crew.drafters.len(), across);
    let mut csv = csv;
    std::thread::scope(|scope| {
        let start = Starter { scope, shared, make };
        let mut makers = Vec::new();
        let load = crew.loader;
        makers.push(start.lane(loader::LANE, "cpu", move || loader::load(shared, load, order, batch))?);
        for (index, worker) in crew.targets.into_iter().enumerate() {
            start.target(index, worker, &mut makers)?;
        }
        let mut drafters = Vec::new();
        for (index, ((device, work), member)) in crew.drafters.into_iter().zip(members).enumerate() {
            let name = drafter_loop::lane(index);
            let drafter = DrafterTrainLoop::new(shared, work, index, member, csv.take());
            drafters.push(start.lane(&name, &device, move || drafter.run())?);
        }
        watch(shared, stop, &drafters);
        let ended: Vec<_> = drafters.into_iter().map(Started::join).collect();
        let made: Vec<_> = makers.into_iter().map(Started::join).collect();
        if let Some(Failure { lane, cause }) = shared.ends.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            return Err(TrainError::Lane { lane, cause });
        }
        let seconds = made.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(worked(ended.into_iter().collect::<Result<Vec<_>, _>>()?, seconds))
    })
}

/// The drafters' ends of their group, which may have members in other processes.
fn group<W: World>(shared: &Shared<'_, W>, drafters: usize, across: Option<Across>) -> Vec<Box<dyn Collective>> {
    let names: Vec<String> = (0..drafters).map(drafter_loop::lane).collect();
    let among = shared.among;
    match across {
        None => Threads::group(&names).into_iter().map(|member| Box::new(member) as Box<dyn Collective>).collect(),
        Some(across) => Ranked::group(&names, across, among.first, among.all)
            .into_iter()
            .map(|member| Box::new(member) as Box<dyn Collective>)
            .collect(),
    }
}

fn worked<W: World>(drafters: Vec<(String, Learnt<W::Drafter>)>, makers: Vec<(String, f64)>) -> Worked<W> {
    let made: Vec<Made> = drafters.iter().map(|(_, learnt)| learnt.made).collect();
    let seconds = made.iter().map(|made| made.seconds - made.paused).fold(1e-9, f64::max);
    let mut loop_seconds: Vec<_> = drafters.iter().map(|(lane, learnt)| (lane.clone(), learnt.made.seconds)).collect();
    loop_seconds.extend(makers);
    Worked {
        steps: made.iter().map(|made| made.steps).min().unwrap_or_default(),
        tokens_per_s: made.iter().map(|made| made.tokens).sum::<u64>() as f64 / seconds,
        drafters: drafters.into_iter().map(|(_, learnt)| learnt.work).collect(),
        loop_seconds,
    }
}

/// A lane that runs.
struct Started<'scope, T> {
    lane: String,
    handle: ScopedJoinHandle<'scope, Result<T, String>>,
}

impl<T> Started<'_, T> {
    fn join(self) -> Result<(String, T), TrainError> {
        let ended = self.handle.join().unwrap_or_else(|cause| Err(lane::cause_text(cause.as_ref())));
        ended.map(|done| (self.lane.clone(), done)).map_err(|cause| TrainError::Lane { lane: self.lane, cause })
    }
}

/// Starts lanes.
#[derive(Clone, Copy)]
struct Starter<'scope, 'env, 'a, W: World> {
    scope: &'scope Scope<'scope, 'env>,
    shared: &'scope Shared<'a, W>,
    make: MakeLane<'scope>,
}

impl<'scope, 'a: 'scope, W: World + 'scope> Starter<'scope, '_, 'a, W> {
    fn lane<T: Send + 'scope>(
        &self,
        name: &str,
        device: &str,
        work: impl FnOnce() -> Result<T, String> + Send + 'scope,
    ) -> Result<Started<'scope, T>, TrainError> {
        let (shared, lane) = (self.shared, name.to_owned());
        let work = move || {
            shared.set_threads();
            work()
        };
        let own = lane.clone();
        let failed = move |cause: &str| shared.fail(&own, cause);
        match lane::spawn(self.scope, name, (self.make)(name, device), work, failed) {
            Ok(handle) => Ok(Started { lane, handle }),
            Err(source) => {
                shared.abandon();
                Err(TrainError::Lane { lane, cause: format!("its thread could not be started: {source}") })
            }
        }
    }

    /// A target's lane, and that of its post-processing where it has one.
    fn target(
        &self,
        index: usize,
        worker: TargetWorker<W>,
        makers: &mut Vec<Started<'scope, f64>>,
    ) -> Result<(), TrainError> {
        let shared = self.shared;
        let TargetWorker { device, target, post } = worker;
        let (then, posted) = match shared.posts.get(index) {
            None => (Then::Here(post), None),
            Some(from) => (Then::Elsewhere(from), Some(PostLoop { shared, index, work: post, from })),
        };
        let target = TargetForwardLoop::new(shared, index, target, then);
        // The target's lane first: whoever shows a device beside the first of its lanes shows it there.
        makers.push(self.lane(&target_loop::lane(index), &device, move || target.run())?);
        if let Some(posted) = posted {
            makers.push(self.lane(&post_loop::lane(index), &device, move || posted.run())?);
        }
        Ok(())
    }
}

/// Waits for the drafters' end, and closes the queues when somebody wants to stop.
fn watch<W: World, T>(shared: &Shared<'_, W>, stop: Stop<'_>, drafters: &[Started<'_, T>]) {
    while !drafters.iter().all(|drafter| drafter.handle.is_finished()) {
        match (stop(), shared.on_stop) {
            (true, OnStop::Drop) => shared.abandon(),
            // The loader's next batch finds no queue any more; the others go their way.
            (true, OnStop::Drain) => {
                shared.stop();
                shared.batches.close();
            }
            (false, _) => {}
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // Nobody takes hidden states any more: let the others go.
    shared.abandon();
}
