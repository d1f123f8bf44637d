//! A model's own chat template and tokenizer.

use crate::data::{ChatTemplate, Conversation, Tokenizer};
use crate::error::TrainError;
use crate::model::ModelError;
use crate::target::TargetConfig;
use std::path::Path;

/// Text tools of a model.
pub struct TextTools {
    /// Its chat template.
    pub template: ChatTemplate,
    /// Its tokenizer.
    pub tokenizer: Tokenizer,
}

impl TextTools {
    /// Loads both from a model's directory.
    ///
    /// # Errors
    /// A missing or unusable file.
    pub fn load(dir: &Path) -> Result<Self, TrainError> {
        // A directory that is no model at all should say so, not that it lacks a template.
        TargetConfig::load(dir)?;
        Ok(Self { template: ChatTemplate::load(dir)?, tokenizer: Tokenizer::load(dir)? })
    }

    /// Refuses a tokenizer that knows more tokens than the model.
    ///
    /// # Errors
    /// Names both numbers.
    pub fn check(&self, target: &TargetConfig, dir: &Path) -> Result<(), TrainError> {
        let (known, rows) = (self.tokenizer.vocab_size() as i64, target.vocab_size);
        if known <= rows {
            return Ok(());
        }
        let message = format!(
            "its ids go up to {}, but the model's vocab_size is {rows}: they do not belong together",
            known - 1
        );
        Err(ModelError::Config { path: dir.join("tokenizer.json"), message }.into())
    }

    /// The token ids of a conversation, up to where the assistant would begin to write.
    ///
    /// # Errors
    /// The template or the tokenizer refuses the text.
    pub fn prompt(&self, conversation: &Conversation) -> Result<Vec<i64>, TrainError> {
        let text = self.template.render(&conversation.messages, true)?;
        Ok(self.tokenizer.encode(&text)?.into_iter().map(i64::from).collect())
    }
}
