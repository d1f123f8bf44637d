//! `dflash prepare`: prompts through the chat template, answered by the target itself, into tokenised shards.

use crate::TextTools;
use crate::config::Config;
use crate::data::{
    AssistantMask, ContentKey, Conversation, DataError, Filter, FilterReport, Key, Meta, Sample, cached,
    read_conversations, replace_shards, write_shards,
};
use crate::device;
use crate::error::TrainError;
use crate::target::{GenerateOptions, Target, generate};
use serde_json::{Map, json};

/// Tokens a shard holds at most.
const SHARD_TOKENS: usize = 4 << 20;

/// What came of a preparation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The shards were there already, made from the same input.
    pub cached: bool,
    /// Samples in the shards.
    pub samples: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Tokens that the loss sees.
    pub supervised: u64,
    /// Prompts left out because they were longer than `max_prompt_tokens`.
    pub long_prompts: usize,
    /// What the filter did.
    pub filter: FilterReport,
}

/// How far a preparation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Prompts to answer.
    pub prompts: usize,
    /// Prompts answered.
    pub answered: usize,
    /// Tokens generated.
    pub tokens: usize,
}

/// Makes the shards of a configuration, unless they are there. Shards made from other input are an error, unless
/// `replace` says to replace them.
///
/// # Errors
/// Bad input; see [`TrainError`].
pub fn prepare(config: &Config, replace: bool, progress: &mut dyn FnMut(Progress)) -> Result<Prepared, TrainError> {
    let tools = TextTools::load(&config.model.target)?;
    // Before the long work: is there anything to read, and is the place free?
    let mut conversations = read_conversations(&config.data.prompts)?;
    if config.data.prompts_limit > 0 {
        conversations.truncate(config.data.prompts_limit);
    }
    let key = key(config, &tools)?;
    match cached(&config.data.shards, &key) {
        Ok(true) => return found(config),
        Err(DataError::OtherDataset { .. }) if replace => (),
        other => drop(other?),
    }
    let device = device::resolve(config.pipeline.target_device)?;
    let target = Target::load(&config.model.target, device::kind(config.model.dtype, device), device)?;
    tools.check(&target.config, &config.model.target)?;
    let (samples, long_prompts) = answer(config, &tools, &target, &conversations, progress)?;
    let filter = Filter {
        min_supervised_pairs: 1,
        min_loss_tokens: config.data.min_loss_tokens,
        max_length: Some(config.data.max_length.min(longest(&target, config))),
    };
    let (samples, filter) = filter.apply(samples);
    if samples.is_empty() {
        let problem = format!("no sample is left to train on ({filter}; {long_prompts} prompts too long); see [data]");
        return Err(TrainError::Empty { path: config.data.prompts.clone(), problem });
    }
    let write = if replace { replace_shards } else { write_shards };
    let manifest = write(&config.data.shards, &samples, &meta(key, long_prompts, filter), SHARD_TOKENS)?;
    Ok(Prepared {
        cached: false,
        samples: manifest.samples,
        tokens: manifest.tokens,
        supervised: manifest.supervised_tokens,
        long_prompts,
        filter,
    })
}

fn found(config: &Config) -> Result<Prepared, TrainError> {
    let manifest = crate::data::Manifest::read(&config.data.shards)?;
    Ok(Prepared {
        cached: true,
        samples: manifest.samples,
        tokens: manifest.tokens,
        supervised: manifest.supervised_tokens,
        long_prompts: 0,
        filter: FilterReport::default(),
    })
}

fn meta(key: Key, long_prompts: usize, filter: FilterReport) -> Meta {
    let mut settings = Map::new();
    settings.insert("long_prompts".to_owned(), json!(long_prompts));
    settings.insert("filter".to_owned(), json!(filter.to_string()));
    Meta { key, settings }
}

/// Everything that decides what the shards hold.
///
/// # Errors
/// A file cannot be read, or the device is not there.
pub fn key(config: &Config, tools: &TextTools) -> Result<Key, TrainError> {
    let (dir, data) = (&config.model.target, &config.data);
    let kind = device::kind(config.model.dtype, device::resolve(config.pipeline.target_device)?);
    let mut key = ContentKey::new()
        .text("template", tools.template.source())
        .text("dtype", &format!("{kind:?}"))
        .text("max_new_tokens", &data.max_new_tokens.to_string())
        .text("max_prompt_tokens", &data.max_prompt_tokens.to_string())
        .text("min_loss_tokens", &data.min_loss_tokens.to_string())
        .text("prompts_limit", &data.prompts_limit.to_string())
        .text("max_length", &data.max_length.to_string())
        .file("prompts", &data.prompts)?
        .file("tokenizer", &dir.join("tokenizer.json"))?
        .file("config", &dir.join("config.json"))?;
    for name in crate::model::files::weight_files(dir)? {
        let label = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        key = key.file(&label, &name)?;
    }
    Ok(key.finish())
}

/// The longest text whose last block still has positions in the target's tables.
fn longest(target: &Target, config: &Config) -> usize {
    usize::try_from(target.max_length()).unwrap_or(0).saturating_sub(config.drafter.block_size)
}

/// A conversation on its way to a sample.
enum Job {
    /// It has its answer.
    Whole(Sample),
    /// The target will answer.
    Prompt { id: String, ids: Vec<i64> },
}

impl Job {
    fn prompt(&self) -> Option<&Vec<i64>> {
        match self {
            Self::Prompt { ids, .. } => Some(ids),
            Self::Whole(_) => None,
        }
    }
}

fn answer(
    config: &Config,
    tools: &TextTools,
    target: &Target,
    conversations: &[Conversation],
    progress: &mut dyn FnMut(Progress),
) -> Result<(Vec<Sample>, usize), TrainError> {
    let data = &config.data;
    let limit = data.max_prompt_tokens.min(longest(target, config).saturating_sub(data.max_new_tokens));
    let mask = AssistantMask::new(&tools.template, &tools.tokenizer)?;
    let jobs = conversations.iter().map(|c| job(c, tools, &mask)).collect::<Result<Vec<_>, _>>()?;
    let long = |job: &Job| job.prompt().is_some_and(|ids| ids.len() > limit || ids.is_empty());
    let all = jobs.len();
    let jobs: Vec<_> = jobs.into_iter().filter(|job| !long(job)).collect();
    let long_prompts = all - jobs.len();
    let prompts: Vec<_> = jobs.iter().filter_map(Job::prompt).cloned().collect();
    let options = GenerateOptions {
        max_new_tokens: data.max_new_tokens,
        batch: data.generate_batch,
        stop_ids: target.config.eos_token_ids.clone(),
    };
    let mut at = Progress { prompts: prompts.len(), ..Progress::default() };
    progress(at);
    let answers = generate(target, &prompts, &options, |tokens, answered| {
        at.tokens += tokens;
        at.answered += answered;
        progress(at);
    });
    let mut answers = answers.into_iter();
    let samples = jobs
        .into_iter()
        .map(|job| match job {
            Job::Whole(sample) => sample,
            Job::Prompt { id, ids } => joined(id, &ids, &answers.next().unwrap_or_default().ids),
        })
        .collect();
    Ok((samples, long_prompts))
}

fn job(conversation: &Conversation, tools: &TextTools, mask: &AssistantMask<'_>) -> Result<Job, TrainError> {
    let id = conversation.id.clone();
    if conversation.messages.last().is_some_and(crate::data::Message::is_assistant) {
        let tokens = mask.tokenise(conversation)?;
        return Ok(Job::Whole(Sample { id, ids: tokens.ids, loss_mask: tokens.loss_mask }));
    }
    Ok(Job::Prompt { id, ids: tools.prompt(conversation)? })
}

/// Prompt and answer as one sample; the answer is supervised, the token that ends it included.
fn joined(id: String, prompt: &[i64], answer: &[i64]) -> Sample {
    let ids = prompt.iter().chain(answer).map(|&id| u32::try_from(id).unwrap_or_default()).collect();
    let loss_mask = (0..prompt.len() + answer.len()).map(|i| i >= prompt.len()).collect();
    Sample { id, ids, loss_mask }
}
