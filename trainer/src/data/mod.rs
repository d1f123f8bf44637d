//! From conversations in a JSONL file to token ids with a loss mask, kept in shards.
//!
//! The steps, each its own file and each usable alone:
//!
//! 1. [`read_rows`] reads rows and names the line of a bad one.
//! 2. [`ChatTemplate`] renders a conversation as the model was taught to see it.
//! 3. [`AssistantMask`] turns it into ids and marks the tokens that the assistant wrote ([`Tokenizer`] below it).
//! 4. [`Filter`] drops what cannot train a drafter, and counts it.
//! 5. [`write_shards`] keeps the result, content-addressed by a [`ContentKey`]; [`PreloadedDataset`] loads it again.
//!
//! Nothing in here needs libtorch.

mod dataset;
mod error;
mod filters;
#[cfg(test)]
mod fixtures;
mod jsonl;
mod key;
mod manifest;
mod mask;
mod packing;
mod shard;
mod template;
mod tokenizer;

pub use dataset::{PreloadedDataset, cached, replace_shards, write_shards};
pub use error::DataError;
pub use filters::{Filter, FilterReport};
pub use jsonl::{ROW_EXAMPLE, read_conversations, read_rows};
pub(crate) use key::hex;
pub use key::{ContentKey, Key};
pub use manifest::{Manifest, Meta, ShardEntry};
pub use mask::{AssistantMask, Tokenised};
pub use packing::{document_ids, document_ids_reference, pack};
pub use template::ChatTemplate;
pub use tokenizer::Tokenizer;

use serde::{Deserialize, Serialize};

/// One turn of a conversation, under the names that chat templates use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub content: String,
    /// What the assistant thought before it answered, for templates that show it.
    ///
    /// Left out of the serialised form when there is none: templates ask whether it `is defined`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
}

impl Message {
    /// A message without separate reasoning.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), reasoning_content: None }
    }

    /// Whether the model wrote this turn.
    pub fn is_assistant(&self) -> bool {
        self.role == "assistant"
    }
}

/// One row of a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// Turns, for the chat template.
    Conversation(Conversation),
    /// Text as it is: no template, every token supervised.
    Text {
        /// The row's id.
        id: String,
        /// The text.
        text: String,
    },
    /// Token ids as they are.
    Tokens(Sample),
}

impl Row {
    /// The row's id; unique within its file.
    pub fn id(&self) -> &str {
        match self {
            Self::Conversation(conversation) => &conversation.id,
            Self::Text { id, .. } => id,
            Self::Tokens(sample) => &sample.id,
        }
    }
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The row's `id`, or `<file stem>:<line>`; unique within its file.
    pub id: String,
    /// Where the row came from, if it says so (`source`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The turns, in order; at least one.
    pub messages: Vec<Message>,
}

/// One training sequence: token ids, and which of them the loss sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// The conversation's id.
    pub id: String,
    /// Token ids of the whole text.
    pub ids: Vec<u32>,
    /// As long as `ids`; true where the assistant wrote the token.
    pub loss_mask: Vec<bool>,
}

impl Sample {
    /// How many tokens the loss sees.
    pub fn supervised(&self) -> usize {
        self.loss_mask.iter().filter(|&&inside| inside).count()
    }
}
