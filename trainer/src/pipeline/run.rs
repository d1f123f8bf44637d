//! The pipeline on real models.

use super::checkpoint::{Checkpoints, Place};
use super::collective::Across;
use super::crew::{self, Crew, TargetWorker};
use super::held_out::Examiner;
use super::observe::Observer;
use super::parts::{Outcome, Parts};
use super::scene::Scene;
use super::shared::Among;
use super::step::DrafterStep;
use super::streams::settle;
use super::torch::{KeptStates, Largest, Learner, Padder, Poster, Reader, Torch};
use crate::checkpoint::Snapshot;
use crate::config::{Objective, Reduce};
use crate::error::TrainError;
use crate::instrument;
use crate::ranks::Ranks;
use crate::target::Target;
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::{Lane, Profiler};
use std::collections::HashMap;
use std::sync::Arc;
use tch::{Device, Tensor};

/// Trains until the steps are made, `stop` is set, or a lane fails. Attention is computed as
/// [`choose_attention`](super::choose_attention) was told.
///
/// # Errors
/// [`TrainError::Lane`] names the lane that failed first and why; the other lanes have ended by then.
pub fn run(mut parts: Parts<'_>) -> Result<Outcome, TrainError> {
    let features = KeptStates::new(parts.features.take());
    let device = *parts.drafter_devices.first().ok_or_else(|| nobody("drafter"))?;
    let told = (parts.profiler, parts.observer);
    let across = across(parts.ranks.clone(), parts.config.pipeline.reduce, device, told)?;
    let abandon = || features.abandon();
    let first = parts.targets.first().ok_or_else(|| nobody("target"))?;
    let teacher = parts.config.train.loss == Objective::Kl;
    let width = parts.drafter.config.feature_width() + if teacher { parts.drafter.config.hidden_size } else { 0 };
    let scene = Scene {
        config: parts.config,
        samples: parts.samples,
        profiler: parts.profiler,
        observer: parts.observer,
        first: parts.resume.as_ref().map_or(0, |from| from.state.step),
        attempt: parts.saving.attempt,
        targets: parts.targets.len(),
        drafters: parts.drafter_devices.len(),
        among: among(parts.ranks.as_ref(), parts.drafter_devices.len()),
        on_gpu: first.device().is_cuda(),
        token_bytes: width as u64 * first.kind().elt_size_in_bytes() as u64,
        also: &abandon,
    };
    let shared = scene.shared::<Torch<'_>>();
    let largest = Largest::of(parts.samples, parts.config.train.batch);
    let drafters = learners(&parts, first, &scene, (&largest, width))?;
    // The lanes work on streams of their own, which know nothing of what this thread has queued.
    let devices = parts.targets.iter().map(Target::device).chain(parts.drafter_devices.iter().copied());
    settle(devices).map_err(|cause| TrainError::Lane { lane: "the pipeline".to_owned(), cause })?;
    let taps = parts.drafter.config.target_layer_ids.clone();
    let worker = |target: Target| TargetWorker {
        device: device_name(target.device()),
        post: Poster::new(
            &parts.config.pipeline,
            parts.samples,
            &target,
            (width, largest.clone()),
            &features,
            &parts.drafter_devices,
        ),
        target: Reader { target, samples: parts.samples, taps: taps.clone(), teacher, largest: largest.clone() },
    };
    let crew = Crew { loader: Padder(&features), targets: parts.targets.into_iter().map(worker).collect(), drafters };
    let make = |name: &str, device: &str| observed(parts.profiler.lane(name, device), device);
    let worked = crew::work(&shared, crew, scene.order(), (across, parts.metrics), parts.stop, &make);
    if let Err(error) = features.close() {
        shared.tell(&error.to_string());
    }
    let worked = worked?;
    let first = worked.drafters.into_iter().next().ok_or_else(|| nobody("drafter"))?;
    let (steps, tokens_per_s, loop_seconds) = (worked.steps, worked.tokens_per_s, worked.loop_seconds);
    let evaluation = first.found(steps);
    Ok(Outcome { drafter: first.step.drafter, steps, tokens_per_s, loop_seconds, evaluation })
}

/// This process's drafters among those of all processes.
pub(super) fn among(ranks: Option<&(Arc<Ranks>, Among)>, drafters: usize) -> Among {
    ranks.map_or(Among { first: 0, all: drafters }, |(_, among)| *among)
}

/// This process's end of the group of processes, if there are several; agreed on before anything is begun.
pub(super) fn across(
    ranks: Option<(Arc<Ranks>, Among)>,
    reduce: Reduce,
    device: Device,
    (profiler, observer): (&Profiler, &dyn Observer),
) -> Result<Option<Across>, TrainError> {
    let Some((ranks, _)) = ranks else { return Ok(None) };
    let first = ranks.rank() == 0;
    let (across, note) = Across::new(ranks, reduce, device)?;
    if let Some(note) = note.filter(|_| first) {
        profiler.mark(Severity::Warning, &note);
        observer.note(&format!("warning: {note}"));
    }
    Ok(Some(across))
}

fn nobody(what: &str) -> TrainError {
    TrainError::Lane { lane: "the pipeline".to_owned(), cause: format!("it has no {what}") }
}

/// A learner a drafter's device, all in the same state.
fn learners<'a>(
    parts: &Parts<'a>,
    target: &Target,
    scene: &Scene<'_>,
    (largest, width): (&Largest, i64),
) -> Result<Vec<(String, Learner<'a>)>, TrainError> {
    let place = Place { profiler: parts.profiler, observer: parts.observer, directory: parts.checkpoints };
    let saving = parts.saving.clone();
    let checkpoints = Arc::new(Checkpoints::new(place, target.config.clone(), saving, scene.epoch(), scene.first));
    let (train, samples) = (&parts.config.train, parts.samples);
    // The first drafter evaluates for all.
    let mut examiner = parts.held_out.clone().map(|held_out| Examiner { target: target.shared(), held_out });
    let learner = |&device: &Device| {
        let drafter = parts.drafter.copied_to(device);
        let seen = samples.iter().flat_map(|s| s.ids.iter().copied());
        let rows = (target.embedding.to_device(device), target.head.to_device(device));
        let mut step = DrafterStep::new(train, drafter, rows, seen, ANCHOR_STREAM ^ parts.config.run.seed);
        if let Some(from) = &parts.resume {
            restore(&mut step, from)?;
        }
        let learner = Learner::new(
            (step, &parts.drafter_devices),
            samples,
            Arc::clone(&checkpoints),
            train.learning_rate,
            (largest.clone(), width),
        );
        Ok((
            device_name(device),
            learner.examined_by(examiner.take()).overlapping(parts.config.pipeline.reduce_overlap),
        ))
    };
    parts.drafter_devices.iter().map(learner).collect()
}

/// Goes on where a checkpoint was written.
fn restore(step: &mut DrafterStep, from: &Snapshot) -> Result<(), TrainError> {
    let tensors: HashMap<&str, &Tensor> = from.tensors.iter().map(|(name, t)| (name.as_str(), t)).collect();
    let tensor = |name: &str| tensors.get(name).map(|t| t.shallow_clone());
    step.optimizer.restore(tensor).map_err(|name| TrainError::Lane {
        lane: "drafter:0".to_owned(),
        cause: format!("the checkpoint of step {} has no tensor `{name}` of its shape", from.state.step),
    })
}

/// The anchors' random numbers are not those of the order.
const ANCHOR_STREAM: u64 = 1 << 63;

/// A lane that also notes what its device's allocator does.
fn observed(lane: Lane, device: &str) -> Lane {
    let index = device.strip_prefix("cuda:").and_then(|index| index.parse().ok());
    match index.and_then(|index| instrument::allocator(Device::Cuda(index))) {
        Some(allocator) => lane.allocator(Box::new(allocator)),
        None => lane,
    }
}

pub(super) fn device_name(device: Device) -> String {
    match device {
        Device::Cuda(n) => format!("cuda:{n}"),
        other => format!("{other:?}").to_lowercase(),
    }
}
