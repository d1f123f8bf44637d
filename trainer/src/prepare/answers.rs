//! The answers of a preparation that is under way, kept beside the shards' folder so that an interrupted one goes on
//! where it was.
//!
//! `<shards>.answers-<key>.jsonl`: one line an answer, `{"id": row, "turn": number, "ids": tokens, "ended": bool}`. The
//! key is that of the shards: answers made from other input are in another file. A line torn by a kill is made again.

use crate::data::DataError;
use crate::target::Answer;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Digits of the key in the file's name.
const DIGITS: usize = 12;

#[derive(Serialize, Deserialize)]
struct Line {
    id: String,
    turn: usize,
    ids: Vec<i64>,
    ended: bool,
}

/// The file, and what it held when it was opened.
pub(super) struct AnswerFile {
    path: PathBuf,
    known: HashMap<(String, usize), Answer>,
}

impl AnswerFile {
    /// Reads what an earlier preparation left, if anything.
    pub(super) fn open(shards: &Path, digest: &str) -> Result<Self, DataError> {
        let mut name = shards.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".answers-{}.jsonl", digest.get(..DIGITS).unwrap_or(digest)));
        let path = shards.with_file_name(name);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(DataError::Io { action: "read", path, source }),
        };
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let known = lines.map(|l| ((l.id, l.turn), Answer { ids: l.ids, ended: l.ended })).collect();
        Ok(Self { path, known })
    }

    /// The answer to a row's turn, if it was made already.
    pub(super) fn get(&self, id: &str, turn: usize) -> Option<&Answer> {
        self.known.get(&(id.to_owned(), turn))
    }

    /// Keeps answers that were just made.
    pub(super) fn append<'a>(
        &self,
        answers: impl Iterator<Item = (&'a str, usize, &'a Answer)>,
    ) -> Result<(), DataError> {
        let mut text = String::new();
        for (id, turn, answer) in answers {
            let line = Line { id: id.to_owned(), turn, ids: answer.ids.clone(), ended: answer.ended };
            // A line begins on its own, whatever a kill left before it.
            text.push('\n');
            text.push_str(&serde_json::to_string(&line).unwrap_or_default());
        }
        let written = self.file().and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|source| DataError::Io { action: "write", path: self.path.clone(), source })
    }

    fn file(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().create(true).append(true).open(&self.path)
    }

    /// The shards are written: the answers are in them.
    pub(super) fn remove(&self) {
        // One that stays costs room and is found again under the same key only, so that failing is harmless.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_a_kill_in_the_middle_of_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let shards = dir.path().join("shards");
        let answer = |id| Answer { ids: vec![id, 2], ended: true };
        let file = AnswerFile::open(&shards, "0123456789abcdef").unwrap();
        file.append([("a", 0, &answer(1)), ("b", 1, &answer(7))].into_iter()).unwrap();
        let path = dir.path().join("shards.answers-0123456789ab.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 4]).unwrap();
        let file = AnswerFile::open(&shards, "0123456789abcdef").unwrap();
        assert_eq!((file.get("a", 0), file.get("b", 1)), (Some(&answer(1)), None));
        file.append([("c", 0, &answer(9))].into_iter()).unwrap();
        let file = AnswerFile::open(&shards, "0123456789abcdef").unwrap();
        assert_eq!((file.get("a", 0), file.get("c", 0)), (Some(&answer(1)), Some(&answer(9))));
        assert!(AnswerFile::open(&shards, "another").unwrap().get("a", 0).is_none());
        file.remove();
        assert!(!path.exists());
    }
}
