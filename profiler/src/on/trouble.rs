//! Why a recording stopped before its end: for the program, for whoever asks over the control socket, and on the disk for
//! whoever comes later: in run.json, or, since only rank 0 writes there, in a file of the rank's own.

use std::sync::Mutex;

use dflash_timeline::{RankTrouble, RunDir};

use super::hub::lock;
use crate::Options;

/// What went wrong so far.
#[derive(Debug)]
pub(crate) struct Trouble {
    said: Mutex<Said>,
    run: RunDir,
    attempt: u32,
    /// Where it is noted by another rank than 0; that one notes it in run.json.
    own_file: Option<RankTrouble>,
}

#[derive(Debug, Default)]
struct Said {
    text: Option<String>,
    /// Whether all of it is noted on the disk.
    noted: bool,
}

impl Trouble {
    pub(crate) fn new(options: &Options) -> Self {
        let Options { run, rank, attempt, .. } = options;
        let own_file = (*rank > 0).then(|| run.rank_trouble(*rank, *attempt));
        Self { said: Mutex::default(), run: run.clone(), attempt: *attempt, own_file }
    }

    /// In words; `None`: all is well.
    pub(crate) fn text(&self) -> Option<String> {
        lock(&self.said).text.clone()
    }

    /// In words; rank 0 also knows of the others.
    pub(crate) fn text_of_ranks(&self) -> Option<String> {
        let own = self.text();
        if self.own_file.is_some() { own } else { self.run.trouble_of_ranks(self.attempt, own) }
    }

    /// Adds to it, and notes it on the disk.
    pub(crate) fn add(&self, text: &str) {
        {
            let mut said = lock(&self.said);
            said.text = Some(said.text.take().map_or_else(|| text.to_owned(), |before| format!("{before}; {text}")));
            said.noted = false;
        }
        self.note();
    }

    /// Notes on the disk what does not stand there yet: the disk that stopped the recording may have had no room for that
    /// either. Called by the writer's thread, and by who ends the recording when that has ended.
    pub(crate) fn note(&self) {
        let said = lock(&self.said);
        let (Some(text), false) = (said.text.clone(), said.noted) else { return };
        // Whoever asks meanwhile must not wait for the disk.
        drop(said);
        let noted = match &self.own_file {
            Some(file) => file.note(&text).is_ok(),
            None => self.run.amend_manifest(|manifest| manifest.trouble = Some(text.clone())).is_ok(),
        };
        let mut said = lock(&self.said);
        said.noted = noted && said.text.as_deref() == Some(&text);
    }

    /// Notes what is still to be noted; nothing more will be added.
    pub(crate) fn end(&self) {
        self.note();
        self.own_file.iter().for_each(RankTrouble::close);
    }
}
