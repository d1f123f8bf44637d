//! The model's own chat template, rendered as transformers renders it.

use std::fs;
use std::path::Path;

use minijinja::{Environment, ErrorKind, Value};
use serde_json::Value as Json;

use super::{DataError, Message};

const NAME: &str = "chat_template";

/// A Jinja chat template with the variables that it is given.
///
/// As in transformers: `trim_blocks` and `lstrip_blocks` on, no trailing newline kept, Python's string methods,
/// `raise_exception`, and the variables `messages`, `add_generation_prompt`, `bos_token`, `eos_token`.
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    origin: String,
    variables: Vec<(String, Value)>,
}

impl ChatTemplate {
    /// Loads a model directory's template: `chat_template.jinja`, or `chat_template` of `tokenizer_config.json`
    /// (text, or a list of named templates of which `default` is taken). The file wins, as in transformers.
    ///
    /// # Errors
    /// There is no template, or it or `tokenizer_config.json` cannot be understood.
    pub fn load(model_dir: &Path) -> Result<Self, DataError> {
        let config_path = model_dir.join("tokenizer_config.json");
        let config = read_config(&config_path)?;
        let file = model_dir.join("chat_template.jinja");
        let (source, origin) = match read_optional(&file)? {
            Some(source) => (source, file),
            None => match template_of(&config) {
                Some(source) => (source, config_path),
                None => return Err(DataError::NoTemplate { dir: model_dir.to_owned() }),
            },
        };
        let mut template = Self::from_source(source, origin.display().to_string())?;
        for name in ["bos_token", "eos_token"] {
            if let Some(token) = special_token(&config, name) {
                template = template.with_variable(name, token);
            }
        }
        Ok(template)
    }

    /// A template from its text; `origin` is what errors call it.
    ///
    /// # Errors
    /// The text is not valid Jinja.
    pub fn from_source(source: impl Into<String>, origin: impl Into<String>) -> Result<Self, DataError> {
        let (source, origin) = (source.into(), origin.into());
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> Result<Value, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        });
        environment
            .add_template_owned(NAME, source.clone())
            .map_err(|e| DataError::Template { origin: origin.clone(), problem: explain(&e) })?;
        Ok(Self { environment, source, origin, variables: Vec::new() })
    }

    /// Sets a variable for every rendering, such as `enable_thinking` to false.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The variables given to every rendering as `name=value` lines: with [`source`](Self::source), all that
    /// decides the text of a conversation.
    pub fn variables(&self) -> String {
        self.variables.iter().map(|(name, value)| format!("{name}={value:?}\n")).collect()
    }

    /// The text of a conversation; with `add_generation_prompt`, ending where the assistant would begin to write.
    ///
    /// # Errors
    /// The template raises an exception or uses what minijinja does not have.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, DataError> {
        let failed = |e: minijinja::Error| DataError::Template { origin: self.origin.clone(), problem: explain(&e) };
        let own = [
            ("messages".to_owned(), Value::from_serialize(messages)),
            ("add_generation_prompt".to_owned(), Value::from(add_generation_prompt)),
        ];
        let context: Value = self.variables.iter().cloned().chain(own).collect();
        self.environment.get_template(NAME).map_err(failed)?.render(context).map_err(failed)
    }
}

/// The error's own words and its line; the `Debug` form would show pages of template.
fn explain(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    error.line().map_or_else(|| detail.clone(), |line| format!("line {line}: {detail}"))
}

fn read_config(path: &Path) -> Result<Json, DataError> {
    let Some(text) = read_optional(path)? else { return Ok(Json::Null) };
    serde_json::from_str(&text)
        .map_err(|e| DataError::ModelFile { path: path.to_owned(), problem: format!("not JSON ({e})") })
}

fn read_optional(path: &Path) -> Result<Option<String>, DataError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(DataError::io("read", path)(e)),
    }
}

fn template_of(config: &Json) -> Option<String> {
    match config.get("chat_template")? {
        Json::String(source) => Some(source.clone()),
        Json::Array(named) => {
            let default = named.iter().find(|entry| entry["name"] == "default")?;
            default["template"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

/// A special token's text; files write it plain or as an object with `content`.
fn special_token(config: &Json, name: &str) -> Option<String> {
    let token = config.get(name)?;
    token.as_str().or_else(|| token.get("content")?.as_str()).map(str::to_owned)
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
