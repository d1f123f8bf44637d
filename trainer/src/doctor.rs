//! What an installation can use, and whether a model loads and answers.

use crate::TextTools;
use crate::config::{self, AnchorRule, DeviceChoice, Dtype};
use crate::data::{AssistantMask, Conversation, Message, PreloadedDataset, Sample, Tokenised, read_conversations};
use crate::device;
use crate::drafter::{DFlashDrafter, DrafterConfig, Init, Row};
use crate::error::TrainError;
use crate::guards::{self, Subject, Verdict};
use crate::target::{GenerateOptions, Target, generate};
use dflash_torch::{CudaLibrary, load_cuda};
use std::path::Path;
use tch::Cuda;

/// Lines of (what, what was found).
#[must_use]
pub fn installation() -> Vec<(&'static str, String)> {
    let cuda = match load_cuda() {
        CudaLibrary::Loaded(path) => format!("{}, {} GPUs", path.display(), Cuda::device_count()),
        CudaLibrary::Absent => "libtorch_cuda.so not found: CPU only".to_owned(),
        CudaLibrary::Failed { path, cause } => format!("{} could not be opened: {cause}", path.display()),
    };
    vec![
        ("dflash", env!("CARGO_PKG_VERSION").to_owned()),
        ("threads", tch::get_num_threads().to_string()),
        ("bfloat16", bfloat16()),
        ("cuda", cuda),
    ]
}

fn bfloat16() -> String {
    match device::cpu_bfloat16() {
        Some(instructions) => format!("in hardware ({instructions})"),
        None => "emulated: use dtype = \"float32\" or \"auto\" on the CPU".to_owned(),
    }
}

/// What the guards ask about besides a model and its data.
#[derive(Clone, Copy, Debug)]
pub struct GuardOptions {
    /// Stands for "to be predicted".
    pub mask_token_id: i64,
    /// B
    pub block_size: usize,
    /// Layers of the drafter, and taps of the target.
    pub layers: usize,
}

/// Runs every guard on a model and its data: a folder of tokenised shards, or a JSONL file of conversations. Lines of (guard,
/// what it says).
///
/// # Errors
/// The model or the data are unusable; what a guard finds is in its line.
pub fn guard(model: &Path, data: &Path, options: &GuardOptions) -> Result<Vec<(&'static str, Verdict)>, TrainError> {
    let samples = samples(model, data)?;
    let device = device::resolve(DeviceChoice::Auto)?;
    let target = Target::load(model, device::kind(Dtype::Auto, device), device)?;
    let shape = config::Drafter {
        mask_token_id: options.mask_token_id,
        block_size: options.block_size,
        layers: options.layers,
        ..config::Drafter::default()
    };
    let shape = DrafterConfig::for_target(&target.config, &shape);
    let drafter = DFlashDrafter::fresh(&shape, Init { seed: 0, final_norm: 1.0 }, target.kind(), device);
    let ids: Vec<Vec<i64>> = samples.iter().map(|s| s.ids.iter().map(|&id| i64::from(id)).collect()).collect();
    let rows = samples.iter().zip(&ids).map(|(s, ids)| Row { ids, loss_mask: &s.loss_mask, ..Row::default() });
    let texts: Vec<_> = rows.collect();
    let subject = Subject { target: &target, drafter: &drafter, rule: AnchorRule::TwoSupervised, texts: &texts };
    Ok(guards::all(&subject))
}

fn samples(model: &Path, data: &Path) -> Result<Vec<Sample>, TrainError> {
    if data.is_dir() {
        return Ok(PreloadedDataset::open(data)?.samples().to_vec());
    }
    let tools = TextTools::load(model)?;
    let mask = AssistantMask::new(&tools.template, &tools.tokenizer)?;
    let rows = read_conversations(data)?;
    let sample = |row: &Conversation| {
        let Tokenised { ids, loss_mask } = mask.tokenise(row)?;
        Ok(Sample { id: row.id.clone(), ids, loss_mask })
    };
    rows.iter().map(sample).collect()
}

/// Loads a target and lets it answer a question, greedily.
///
/// # Errors
/// The directory is no usable model.
pub fn ask(model: &Path, question: &str) -> Result<String, TrainError> {
    let tools = TextTools::load(model)?;
    let device = device::resolve(DeviceChoice::Auto)?;
    let target = Target::load(model, device::kind(Dtype::Auto, device), device)?;
    let messages = vec![Message::new("user", question)];
    let prompt = tools.prompt(&Conversation { id: "question".to_owned(), source: None, messages })?;
    let options =
        GenerateOptions { max_new_tokens: 64, batch: 1, stop_ids: target.config.eos_token_ids.clone(), sampling: None };
    let answers = generate(&target, &[prompt], &options, |_, _| {});
    let mut ids = answers.into_iter().next().unwrap_or_default().ids;
    ids.retain(|id| !options.stop_ids.contains(id));
    let ids: Vec<u32> = ids.into_iter().filter_map(|id| u32::try_from(id).ok()).collect();
    Ok(tools.tokenizer.decode(&ids)?)
}
