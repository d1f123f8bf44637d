//! The hidden states on the disk that a training reads and fills.

use super::load::Loaded;
use crate::config::{Config, FeatureCache, Objective, bytes};
use crate::data::{ContentKey, Key};
use crate::drafter::DFlashDrafter;
use crate::features::{DiskFeatures, FeatureError, Rows, beside};
use crate::pipeline::Text;
use crate::target::Target;

/// Opens them, where the configuration wants them.
pub(super) fn features(config: &Config, loaded: &Loaded, rank: usize) -> Result<Option<DiskFeatures>, FeatureError> {
    let pipeline = &config.pipeline;
    if pipeline.feature_cache != FeatureCache::Disk {
        return Ok(None);
    }
    let named = !pipeline.feature_dir.as_os_str().is_empty();
    let root = if named { pipeline.feature_dir.clone() } else { beside(&config.data.shards) };
    // One process fills a folder.
    let root = if rank == 0 { root } else { root.join(format!("rank{rank}")) };
    // Checked with the configuration.
    let most = bytes(&pipeline.feature_bytes).flatten();
    let rows = rows(config, &loaded.key, &loaded.targets[0], &loaded.drafter, &loaded.samples);
    DiskFeatures::open(&root, rows, most).map(Some)
}

/// `made` is what the shards were made from.
fn rows(config: &Config, made: &Key, target: &Target, drafter: &DFlashDrafter, samples: &[Text]) -> Rows {
    let teacher = config.train.loss == Objective::Kl;
    let width = drafter.config.feature_width() + if teacher { drafter.config.hidden_size } else { 0 };
    let numbers = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    let text = |text: &Text| numbers(&text.ids) + "|" + &text.documents.as_deref().map(numbers).unwrap_or_default();
    let texts: Vec<String> = samples.iter().map(text).collect();
    let key = ContentKey::new()
        // The target's weights are among what the shards were made from.
        .digest("shards", &made.digest)
        .text("texts", &texts.join("\n"))
        .text("taps", &format!("{:?}", drafter.config.target_layer_ids))
        .text("what the head reads", if teacher { "behind them" } else { "left out" })
        .text("arithmetic", &format!("{:?}", target.kind()))
        // Another kind of device rounds otherwise.
        .text("device", if target.device().is_cuda() { "GPU" } else { "CPU" })
        .finish();
    let lengths = samples.iter().map(|text| text.ids.len() as u64).collect();
    Rows { key, lengths, width: width as u64, kind: target.kind() }
}
