//! Rows of a JSONL file, in the shapes that data sets come in. Conversations:
//!
//! | shape | key of the list | keys of a message | roles |
//! |---|---|---|---|
//! | plain | `conversations` | `role`, `content` | system, user, assistant |
//! | ShareGPT | `conversations` | `from`, `value` | system, human, gpt |
//! | OpenAI | `messages` | `role`, `content` | system, user, assistant |
//!
//! and what needs no chat template:
//!
//! | shape | keys | supervised |
//! |---|---|---|
//! | plain text | `text` | every token |
//! | pre-tokenised | `input_ids`, `loss_mask` (0 and 1, or false and true) | as the mask says; without one, every token |
//!
//! `id` (text or integer), `source` and a message's `reasoning_content` are optional; other keys are ignored.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use super::{Conversation, DataError, Message, Row, Sample};

/// What a row should look like; part of every message about a bad one.
pub const ROW_EXAMPLE: &str =
    r#"{"id": "a", "conversations": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}"#;

/// Reads all rows of a JSONL file.
///
/// # Errors
/// The first line that is empty, not a conversation, or repeats an id; a file without rows.
pub fn read_rows(path: &Path) -> Result<Vec<Row>, DataError> {
    read(path, parse_line, Row::id)
}

/// Reads a JSONL file whose rows are all conversations.
///
/// # Errors
/// As [`read_rows`], and the first row that is plain text or pre-tokenised.
pub fn read_conversations(path: &Path) -> Result<Vec<Conversation>, DataError> {
    let conversation = |bytes: &[u8], default_id: &str| match parse_line(bytes, default_id)? {
        Row::Conversation(conversation) => Ok(conversation),
        Row::Text { .. } => Err("the row is plain text, where a conversation is needed".into()),
        Row::Tokens(_) => Err("the row is pre-tokenised, where a conversation is needed".into()),
    };
    read(path, conversation, |conversation| &conversation.id)
}

fn read<T>(
    path: &Path,
    parse: impl Fn(&[u8], &str) -> Result<T, String>,
    id: impl Fn(&T) -> &str,
) -> Result<Vec<T>, DataError> {
    let file = File::open(path).map_err(DataError::io("open", path))?;
    let mut reader = BufReader::new(file);
    let mut rows = Vec::new();
    let mut first_use = HashMap::new();
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(DataError::io("read", path))? == 0 {
            break;
        }
        let row = parse(&bytes, &default_id(path, line)).map_err(|problem| DataError::Row {
            path: path.to_owned(),
            line,
            problem,
        })?;
        if let Some(first) = first_use.insert(id(&row).to_owned(), line) {
            return Err(DataError::DuplicateId { path: path.to_owned(), line, first, id: id(&row).to_owned() });
        }
        rows.push(row);
    }
    if rows.is_empty() { Err(DataError::NoRows { path: path.to_owned() }) } else { Ok(rows) }
}

/// `<file stem>:<line>`, for rows that have no id of their own.
fn default_id(path: &Path, line: usize) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}:{line}")
}

/// One line as a row, or what is wrong with it.
fn parse_line(bytes: &[u8], default_id: &str) -> Result<Row, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("byte {} is not UTF-8", e.valid_up_to() + 1))?;
    // Editors on Windows leave a byte order mark that JSON does not know.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    if text.is_empty() {
        return Err("the line is empty".into());
    }
    let value: Value = serde_json::from_str(text).map_err(|e| format!("not JSON ({e})"))?;
    let Value::Object(row) = value else { return Err(format!("a row must be an object, not {}", kind(&value))) };
    match shape(&row)? {
        Shape::Messages(field) => parse_conversation(&row, field, default_id).map(Row::Conversation),
        Shape::Text => Ok(Row::Text { id: row_id(&row, default_id)?, text: required_text(&row, "text")? }),
        Shape::Tokens => parse_tokens(&row, default_id).map(Row::Tokens),
    }
}

/// What a row's keys say that it is.
enum Shape {
    /// A conversation; the key of its messages.
    Messages(&'static str),
    Text,
    Tokens,
}

/// A row that could be read in two ways would be trained on in the wrong one half the time.
fn shape(row: &Map<String, Value>) -> Result<Shape, String> {
    let known = ["conversations", "messages", "text", "input_ids"];
    let given: Vec<_> = known.into_iter().filter(|key| row.contains_key(*key)).collect();
    match given.as_slice() {
        ["text"] => Ok(Shape::Text),
        ["input_ids"] => Ok(Shape::Tokens),
        [field] => Ok(Shape::Messages(field)),
        [] => Err("none of `conversations`, `messages`, `text` and `input_ids` is given".into()),
        [first, second, ..] => Err(format!("both `{first}` and `{second}` are given; keep one")),
    }
}

fn parse_conversation(row: &Map<String, Value>, field: &str, default_id: &str) -> Result<Conversation, String> {
    let list = list(row, field)?;
    let messages = list
        .iter()
        .enumerate()
        .map(|(i, message)| parse_message(message).map_err(|problem| format!("`{field}[{i}]`: {problem}")))
        .collect::<Result<Vec<_>, _>>()?;
    if messages.is_empty() {
        return Err(format!("`{field}` has no messages"));
    }
    Ok(Conversation { id: row_id(row, default_id)?, source: optional_text(row, "source")?, messages })
}

fn parse_tokens(row: &Map<String, Value>, default_id: &str) -> Result<Sample, String> {
    let ids = list(row, "input_ids")?;
    let id_of = |(i, value): (usize, &Value)| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|&id| i32::try_from(id).is_ok());
        id.ok_or_else(|| format!("`input_ids[{i}]` is {value}, not a token id"))
    };
    let ids = ids.iter().enumerate().map(id_of).collect::<Result<Vec<_>, _>>()?;
    if ids.is_empty() {
        return Err("`input_ids` is empty".into());
    }
    let inside = |(i, value): (usize, &Value)| match value {
        Value::Bool(inside) => Ok(*inside),
        other => match other.as_u64() {
            Some(bit @ 0..=1) => Ok(bit == 1),
            _ => Err(format!("`loss_mask[{i}]` is {other}, may be 0 or 1")),
        },
    };
    let loss_mask = match row.get("loss_mask") {
        None | Some(Value::Null) => vec![true; ids.len()],
        Some(_) => list(row, "loss_mask")?.iter().enumerate().map(inside).collect::<Result<Vec<_>, _>>()?,
    };
    if loss_mask.len() != ids.len() {
        return Err(format!("`loss_mask` has {} entries for {} `input_ids`", loss_mask.len(), ids.len()));
    }
    Ok(Sample { id: row_id(row, default_id)?, ids, loss_mask })
}

fn list<'a>(row: &'a Map<String, Value>, field: &str) -> Result<&'a [Value], String> {
    match row.get(field) {
        Some(Value::Array(list)) => Ok(list),
        other => Err(format!("`{field}` must be a list, not {}", other.map_or("missing", kind))),
    }
}

fn parse_message(value: &Value) -> Result<Message, String> {
    let Value::Object(message) = value else {
        return Err(format!("a message must be an object, not {}", kind(value)));
    };
    let share_gpt = message.contains_key("from") || message.contains_key("value");
    let (role_key, content_key) = if share_gpt { ("from", "value") } else { ("role", "content") };
    let role = role_name(&required_text(message, role_key)?, role_key)?;
    Ok(Message {
        role: role.to_owned(),
        content: required_text(message, content_key)?,
        reasoning_content: optional_text(message, "reasoning_content")?,
    })
}

/// The name that templates know a role by. A silent guess here would train on the wrong side of the conversation.
fn role_name(role: &str, key: &str) -> Result<&'static str, String> {
    match role {
        "user" | "human" => Ok("user"),
        "assistant" | "gpt" => Ok("assistant"),
        "system" => Ok("system"),
        other => Err(format!("`{key}` is {other:?}; known are system, user (human) and assistant (gpt)")),
    }
}

fn row_id(row: &Map<String, Value>, default_id: &str) -> Result<String, String> {
    match row.get("id") {
        None | Some(Value::Null) => Ok(default_id.to_owned()),
        Some(Value::String(id)) if !id.is_empty() => Ok(id.clone()),
        Some(Value::Number(id)) if !id.is_f64() => Ok(id.to_string()),
        Some(Value::String(_)) => Err("`id` is empty".into()),
        Some(other) => Err(format!("`id` must be text or an integer, not {}", kind(other))),
    }
}

fn required_text(object: &Map<String, Value>, key: &str) -> Result<String, String> {
    optional_text(object, key)?.ok_or_else(|| format!("`{key}` is missing"))
}

fn optional_text(object: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("`{key}` must be text, not {}", kind(other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[path = "jsonl_tests.rs"]
mod tests;
