//! `dflash prepare`: rows through the chat template, answered by the target itself, into tokenised shards.

mod answers;
mod dialogue;
mod rounds;

use crate::TextTools;
use crate::config::{Config, Regenerate, Supervise};
use crate::data::{
    ContentKey, DataError, Filter, FilterReport, Key, Meta, cached, read_rows, replace_shards, write_shards,
};
use crate::device;
use crate::drafter::DrafterConfig;
use crate::error::TrainError;
use crate::pipeline::choose_attention;
use crate::target::Target;
use answers::AnswerFile;
use serde_json::{Map, json};
use std::fmt;

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
    /// What became of the rows.
    pub rows: Rows,
    /// What the filter did.
    pub filter: FilterReport,
}

/// What became of the rows of a data file: `made + skipped + failed` is their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Became samples, which the filter then looks at.
    pub made: usize,
    /// Left out: a prompt longer than `max_prompt_tokens`, or none at all.
    pub skipped: usize,
    /// Left out: the template or the tokenizer refused them, or an id is not in the model's vocabulary.
    pub failed: usize,
    /// Why the first of those failed.
    pub first_failure: Option<String>,
    /// Answers taken over from an earlier preparation that was interrupted.
    pub resumed: usize,
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { made, skipped, failed, first_failure, resumed } = self;
        let rows = made + skipped + failed;
        write!(f, "{rows} rows: {made} made samples, {skipped} prompts too long or empty, {failed} failed")?;
        if let Some(why) = first_failure {
            write!(f, " (the first: {why})")?;
        }
        if *resumed > 0 {
            write!(f, "; {resumed} answers were there from an interrupted preparation")?;
        }
        Ok(())
    }
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
/// `replace` says to replace them. Answers are kept beside the shards while they are made: a preparation that was
/// interrupted goes on where it was.
///
/// # Errors
/// Bad input; see [`TrainError`].
pub fn prepare(config: &Config, replace: bool, progress: &mut dyn FnMut(Progress)) -> Result<Prepared, TrainError> {
    if config.random.is_on() {
        let problem = "with [random] there is nothing to prepare: train at once".to_owned();
        return Err(TrainError::Empty { path: config.random.target.clone().into(), problem });
    }
    let tools = TextTools::load(&config.model.target)?;
    // Before the long work: is there anything to read, and is the place free?
    let mut rows = read_rows(&config.data.prompts)?;
    if config.data.prompts_limit > 0 {
        rows.truncate(config.data.prompts_limit);
    }
    let key = key(config, &tools)?;
    match cached(&config.data.shards, &key) {
        Ok(true) => return found(config),
        Err(DataError::OtherDataset { .. }) if replace => (),
        other => drop(other?),
    }
    let device = device::resolve(config.pipeline.targets()[0])?;
    let kind = device::kind(config.model.dtype, device);
    let target = Target::load(&config.model.target, kind, device)?;
    let drafter = DrafterConfig::for_target(&target.config, &config.drafter);
    choose_attention(config.train.attention, [device], (&target.config, &drafter, kind))?;
    tools.check(&target.config, &config.model.target)?;
    let answers = AnswerFile::open(&config.data.shards, &key.digest)?;
    let work = rounds::Work { config, tools: &tools, target: &target, limit: longest(&target, config) };
    let (samples, rows) = work.run(rows, &answers, progress)?;
    let filter = Filter {
        min_supervised_pairs: 1,
        min_loss_tokens: config.data.min_loss_tokens,
        max_length: Some(config.data.max_length.min(longest(&target, config))),
    };
    let (samples, filter) = filter.apply(samples);
    if samples.is_empty() {
        let problem = format!("no sample is left to train on ({filter}; {rows}); see [data]");
        return Err(TrainError::Empty { path: config.data.prompts.clone(), problem });
    }
    let write = if replace { replace_shards } else { write_shards };
    let manifest = write(&config.data.shards, &samples, &meta(key, &rows, filter), SHARD_TOKENS)?;
    answers.remove();
    Ok(Prepared {
        cached: false,
        samples: manifest.samples,
        tokens: manifest.tokens,
        supervised: manifest.supervised_tokens,
        rows,
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
        rows: Rows::default(),
        filter: FilterReport::default(),
    })
}

fn meta(key: Key, rows: &Rows, filter: FilterReport) -> Meta {
    let mut settings = Map::new();
    settings.insert("rows".to_owned(), json!(rows.to_string()));
    settings.insert("filter".to_owned(), json!(filter.to_string()));
    Meta { key, settings }
}

/// Everything that decides what the shards hold.
///
/// # Errors
/// A file cannot be read, or the device is not there.
pub fn key(config: &Config, tools: &TextTools) -> Result<Key, TrainError> {
    let (dir, data) = (&config.model.target, &config.data);
    let kind = device::kind(config.model.dtype, device::resolve(config.pipeline.targets()[0])?);
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
    // Named where they are not the defaults, so that shards made before there was a choice stay valid.
    if data.regenerate == Regenerate::All {
        key = key.text("regenerate", "all");
    }
    if data.supervise == Supervise::LastTurn {
        key = key.text("supervise", "last_turn");
    }
    if data.temperature > 0.0 {
        key = key.text("temperature", &data.temperature.to_string()).text("seed", &config.run.seed.to_string());
    }
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
