//! Why the recording of a rank stopped. Rank 0 alone writes run.json; each other one notes it beside its segments, in
//! `timeline/rank1.trouble.json`, for which it keeps room: the disk that stopped it may be full.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use super::RunDir;
use super::kept_file::KeptFile;

/// Bytes that are kept for it.
const ROOM: usize = 8 << 10;

#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// Which start of the run it is about: a later one may have fewer ranks.
    attempt: u32,
    trouble: String,
}

/// Where a rank above 0 notes why its recording stopped.
#[derive(Debug)]
pub struct RankTrouble {
    file: KeptFile,
    attempt: u32,
}

impl RankTrouble {
    /// Notes it, instead of what was noted before.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn note(&self, trouble: &str) -> io::Result<()> {
        self.file
            .replace(&(serde_json::to_string(&Note { attempt: self.attempt, trouble: trouble.to_owned() })? + "\n"))
    }

    /// Gives the room back that was kept: nothing more will be noted.
    pub fn close(&self) {
        self.file.drop_spare();
        self.file.drop_if_blank();
    }
}

impl RunDir {
    /// Where a rank above 0 notes why its recording stopped. Keeps room for that from now on, if there is some.
    #[must_use]
    pub fn rank_trouble(&self, rank: u32, attempt: u32) -> RankTrouble {
        let file = KeptFile::new(&self.timeline_dir(), &format!("rank{rank}.trouble.json"));
        // Both, since they take turns. Where there is no room for them the recording finds none either.
        let _ = file.replace(&" ".repeat(ROOM)).and_then(|()| file.keep_spare(ROOM));
        RankTrouble { file, attempt }
    }

    /// Why recordings of an attempt stopped, in words: `first` is rank 0's reason, as in run.json, the others' lie beside
    /// their segments. Ranks are named, unless it is rank 0's alone. `None`: none did, as far as that could be noted.
    #[must_use]
    pub fn trouble_of_ranks(&self, attempt: u32, first: Option<String>) -> Option<String> {
        let others = self.noted_by_ranks(attempt);
        if others.is_empty() {
            return first;
        }
        let all = first.map(|first| (0, first)).into_iter().chain(others);
        Some(all.map(|(rank, trouble)| format!("rank {rank}: {trouble}")).collect::<Vec<_>>().join("; "))
    }

    /// What cannot be read says nothing: it is no more than a hint at what the timeline shows by itself.
    fn noted_by_ranks(&self, attempt: u32) -> BTreeMap<u32, String> {
        let Ok(entries) = fs::read_dir(self.timeline_dir()) else { return BTreeMap::new() };
        let noted = entries.filter_map(|entry| {
            let path = entry.ok()?.path();
            let rank = path.file_name()?.to_str()?.strip_prefix("rank")?.strip_suffix(".trouble.json")?.parse().ok()?;
            let note: Note = serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()?;
            (note.attempt == attempt).then_some((rank, note.trouble))
        });
        noted.collect()
    }
}
