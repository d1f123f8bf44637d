//! What a training for measuring is made of: targets of random weights, random texts of one length.

use crate::config::{Config, Random};
use crate::data::{ContentKey, Key};
use crate::error::TrainError;
use crate::model::ModelError;
use crate::pipeline::Text;
use crate::target::{Target, TargetConfig};
use dflash_profiler::timeline::RunDir;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tch::{Device, Kind};

/// Why a run cannot be gone on with or evaluated.
pub(super) fn nothing_kept(run: &RunDir) -> TrainError {
    let problem = "a training on random weights keeps neither checkpoints nor a drafter: start a new one".to_owned();
    TrainError::Empty { path: run.path().into(), problem }
}

/// Stands for the files that a real training is made from.
pub(super) fn key(config: &Config) -> Key {
    let (target, seed) = (&config.random.target, config.run.seed.to_string());
    ContentKey::new().text("random target", target).text("seed", &seed).finish()
}

/// The same target on every device.
pub(super) fn targets(
    shape: &TargetConfig,
    seed: u64,
    kind: Kind,
    devices: &[Device],
) -> Result<Vec<Target>, ModelError> {
    let target = |&device: &Device| {
        tch::manual_seed(seed.cast_signed());
        Target::random(shape.clone(), kind, device)
    };
    devices.iter().map(target).collect()
}

/// Texts of ids below the mask's, all supervised.
pub(super) fn texts(config: &Config) -> Vec<Text> {
    let Random { tokens, samples, .. } = config.random;
    let mut rng = StdRng::seed_from_u64(config.run.seed);
    let mut text = |number: usize| Text {
        ids: (0..tokens).map(|_| rng.random_range(0..config.drafter.mask_token_id)).collect(),
        loss_mask: vec![true; tokens],
        name: format!("random text {number}"),
        documents: None,
    };
    (0..samples).map(&mut text).collect()
}
