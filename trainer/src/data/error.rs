//! What can be wrong with data: each message names the place and the way out.

use std::io;
use std::path::{Path, PathBuf};

use super::jsonl::ROW_EXAMPLE;

/// An error of the data layer.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: "read", "write", ...
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line of a data file is not a conversation.
    #[error("{}:{line}: {problem}; a row is one line such as {ROW_EXAMPLE}", path.display())]
    Row {
        /// The data file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A data file holds no row at all.
    #[error("{} holds no rows; write one JSON object per line, such as {ROW_EXAMPLE}", path.display())]
    NoRows {
        /// The data file.
        path: PathBuf,
    },
    /// Two rows share an id.
    #[error(
        "{}:{line}: the id {id:?} was already used on line {first}; give each row its own id or leave `id` out",
        path.display()
    )]
    DuplicateId {
        /// The data file.
        path: PathBuf,
        /// The later line.
        line: usize,
        /// The line that had the id first.
        first: usize,
        /// The id.
        id: String,
    },
    /// The model directory lacks a file.
    #[error("{} has no {file}; point at a complete Hugging Face model directory", dir.display())]
    MissingModelFile {
        /// The model directory.
        dir: PathBuf,
        /// The file's name.
        file: &'static str,
    },
    /// A file of the model directory cannot be understood.
    #[error("{}: {problem}; it may be half-written, so fetch or copy the model again", path.display())]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The model does not say how a conversation is written down.
    #[error(
        "{} has no chat template; add chat_template.jinja there or `chat_template` to its tokenizer_config.json \
         (base models have none: use the instruct model)",
        dir.display()
    )]
    NoTemplate {
        /// The model directory.
        dir: PathBuf,
    },
    /// The chat template is not valid, or refuses the conversation.
    #[error(
        "chat template of {origin}: {problem}; correct the template, or the conversation if the template refuses it"
    )]
    Template {
        /// Where the template came from.
        origin: String,
        /// What it said, with its line.
        problem: String,
    },
    /// The tokenizer refuses a text or ids.
    #[error("the tokenizer cannot {action}: {problem}; check that tokenizer.json belongs to this model")]
    Tokenize {
        /// "encode" or "decode".
        action: &'static str,
        /// What it said.
        problem: String,
    },
    /// The assistant's part of a rendered conversation was not found.
    #[error(
        "conversation {id:?}, message {message}: {problem}, so the loss mask is not known; \
         drop the row, or use a template that writes turns one after another"
    )]
    Mask {
        /// The conversation.
        id: String,
        /// The message, counted from 1.
        message: usize,
        /// What did not fit.
        problem: String,
    },
    /// A sample that cannot be written.
    #[error("sample {id:?}: {problem}; prepare it again with the model's own tokenizer")]
    Sample {
        /// The sample.
        id: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of a prepared dataset does not hold what its manifest promises.
    #[error("{}: `{field}`: {problem}; the file was changed or cut off, so prepare the data again", path.display())]
    Shard {
        /// The file.
        path: PathBuf,
        /// The tensor or manifest field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A directory that is not ours stands where a dataset should go, or where one was expected.
    #[error(
        "{} is not a prepared dataset (it has no manifest.json); name the directory that `dflash prepare` wrote, \
         or one that does not exist yet", dir.display()
    )]
    NotADataset {
        /// The directory.
        dir: PathBuf,
    },
    /// There is a dataset already, and it was made from the same input.
    #[error("{} already holds this dataset; use it, name another directory, or replace it with --force", dir.display())]
    DatasetExists {
        /// The directory.
        dir: PathBuf,
    },
    /// There is a dataset already, made from something else.
    #[error(
        "{} holds a dataset made from other input ({differences}); name another directory, or replace it with --force",
        dir.display()
    )]
    OtherDataset {
        /// The directory.
        dir: PathBuf,
        /// Which parts of the key differ, with both values.
        differences: String,
    },
}

impl DataError {
    /// For `map_err`: an I/O error with what was tried on which path.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// A dataset file whose `field` is wrong.
    pub(super) fn shard(path: &Path, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Shard { path: path.to_owned(), field: field.into(), problem: problem.into() }
    }
}
