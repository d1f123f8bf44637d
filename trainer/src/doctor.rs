//! What an installation can use, and whether a model loads and answers.

use crate::TextTools;
use crate::config::{DeviceChoice, Dtype};
use crate::data::{Conversation, Message};
use crate::device;
use crate::error::TrainError;
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
