//! The model's own tokenizer, with the one behaviour that training needs.

use std::ops::Range;
use std::path::Path;

use super::DataError;

/// A Hugging Face tokenizer that adds nothing to a text.
///
/// Special-token strings inside a text are special tokens, as everywhere in Hugging Face's libraries; no special
/// token is added that the text does not hold, because the chat template has written those already.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    vocab_size: usize,
}

impl Tokenizer {
    /// Loads `tokenizer.json` of a model directory.
    ///
    /// # Errors
    /// The file is missing or cannot be understood.
    pub fn load(model_dir: &Path) -> Result<Self, DataError> {
        let path = model_dir.join("tokenizer.json");
        if !path.is_file() {
            return Err(DataError::MissingModelFile { dir: model_dir.to_owned(), file: "tokenizer.json" });
        }
        Self::from_file(&path)
    }

    /// Loads one tokenizer file.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn from_file(path: &Path) -> Result<Self, DataError> {
        let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
        let mut inner = tokenizers::Tokenizer::from_bytes(&bytes)
            .map_err(|e| DataError::ModelFile { path: path.to_owned(), problem: format!("not a tokenizer ({e})") })?;
        // A post-processor adds special tokens, which we never want, and trims white space off the offsets, which
        // would move a mask's edge. Files also carry the padding and truncation that someone saved them with.
        inner.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        inner.with_padding(None);
        inner
            .with_truncation(None)
            .map_err(|e| DataError::ModelFile { path: path.to_owned(), problem: e.to_string() })?;
        renumbers(&inner, &bytes).map_err(|problem| DataError::ModelFile { path: path.to_owned(), problem })?;
        let vocab_size = inner.get_vocab(true).values().max().map_or(0, |&id| id as usize + 1);
        Ok(Self { inner, vocab_size })
    }

    /// Token ids of `text`.
    ///
    /// # Errors
    /// The tokenizer has no token for a part of the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, DataError> {
        Ok(self.encoding(text)?.get_ids().to_vec())
    }

    /// Token ids of `text`, each with the bytes of `text` it stands for.
    ///
    /// The parts of a character that was split into several tokens each have the whole character's bytes.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_with_offsets(&self, text: &str) -> Result<Vec<(u32, Range<usize>)>, DataError> {
        let encoding = self.encoding(text)?;
        let ids = encoding.get_ids().iter();
        Ok(ids.zip(encoding.get_offsets()).map(|(&id, &(start, end))| (id, start..end)).collect())
    }

    /// The text of `ids`, special tokens included.
    ///
    /// # Errors
    /// The tokenizer's decoder fails.
    pub fn decode(&self, ids: &[u32]) -> Result<String, DataError> {
        self.inner.decode(ids, false).map_err(|e| DataError::Tokenize { action: "decode", problem: e.to_string() })
    }

    /// The id of a token, special or not.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// One more than the highest id, added tokens included: what an embedding table must have rows for.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn encoding(&self, text: &str) -> Result<tokenizers::Encoding, DataError> {
        self.inner.encode(text, false).map_err(|e| DataError::Tokenize { action: "encode", problem: e.to_string() })
    }
}

/// An added token that the vocabulary lacks gets the next free id, whatever the file says: other ids than the model's.
fn renumbers(inner: &tokenizers::Tokenizer, bytes: &[u8]) -> Result<(), String> {
    let file: AddedTokens = serde_json::from_slice(bytes).map_err(|e| format!("not a tokenizer ({e})"))?;
    let other = |token: &&AddedToken| inner.token_to_id(&token.content) != Some(token.id);
    let Some(token) = file.added_tokens.iter().find(other) else { return Ok(()) };
    let got = inner.token_to_id(&token.content).map_or_else(|| "none".to_owned(), |id| id.to_string());
    Err(format!(
        "added token {:?} has id {}, but would be read as {got}: its vocabulary lacks it",
        token.content, token.id
    ))
}

#[derive(serde::Deserialize)]
struct AddedTokens {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
}

#[derive(serde::Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::fixtures;
    use super::*;

    #[test]
    fn what_the_file_would_add_trim_or_cut_is_left_out() {
        let path = Path::new(fixtures::DIR).join("qwen-mini.tokenizer.json");
        let mut saved: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        saved["post_processor"] = serde_json::json!(
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
        );
        saved["truncation"] = serde_json::json!(
            {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
        );
        saved["padding"] = serde_json::json!(
            {"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
             "pad_type_id": 0, "pad_token": "!"}
        );
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tokenizer.json"), saved.to_string()).unwrap();
        let text = "<|im_start|>assistant\n\n\n  two  spaces ";
        let tokens = Tokenizer::load(dir.path()).unwrap().encode_with_offsets(text).unwrap();
        assert_eq!(tokens, fixtures::mini_tokenizer("qwen3").encode_with_offsets(text).unwrap());
        let pieces: String = tokens.into_iter().map(|(_, bytes)| &text[bytes]).collect();
        assert_eq!(pieces, text, "white space belongs to its token");
    }

    #[test]
    fn an_added_token_that_would_get_another_id_is_refused() {
        let path = Path::new(fixtures::DIR).join("qwen-mini.tokenizer.json");
        let mut saved: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut token = saved["added_tokens"][0].clone();
        (token["id"], token["content"]) = (900_000.into(), "<|far|>".into());
        saved["added_tokens"].as_array_mut().unwrap().push(token);
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tokenizer.json"), saved.to_string()).unwrap();
        let message = Tokenizer::load(dir.path()).err().unwrap().to_string();
        assert!(message.contains("added token \"<|far|>\" has id 900000, but would be read as "), "{message}");
    }

    #[test]
    fn missing_tokenizer_names_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let message = Tokenizer::load(dir.path()).err().unwrap().to_string();
        assert!(message.contains(&*dir.path().to_string_lossy()) && message.contains("tokenizer.json"), "{message}");
    }

    #[test]
    fn half_written_tokenizer_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tokenizer.json"), r#"{"version": "1.0", "mod"#).unwrap();
        let message = Tokenizer::load(dir.path()).err().unwrap().to_string();
        assert!(message.contains("tokenizer.json: not a tokenizer"), "{message}");
    }

    #[test]
    fn tokenizer_of_no_bytes_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tokenizer.json"), "").unwrap();
        assert!(matches!(Tokenizer::load(dir.path()), Err(DataError::ModelFile { .. })));
    }
}
