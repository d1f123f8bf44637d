//! Why a recording stopped before its end: for the program, for whoever asks over the control socket, and in run.json for
//! whoever comes later.

use std::sync::Mutex;

use dflash_timeline::RunDir;

use super::hub::lock;

/// What went wrong so far.
#[derive(Debug)]
pub(crate) struct Trouble {
    said: Mutex<Said>,
    /// Whose run.json it goes into; only rank 0 writes there.
    run: Option<RunDir>,
}

#[derive(Debug, Default)]
struct Said {
    text: Option<String>,
    /// Whether all of it stands in run.json.
    noted: bool,
}

impl Trouble {
    pub(crate) fn new(run: &RunDir, rank: u32) -> Self {
        Self { said: Mutex::default(), run: (rank == 0).then(|| run.clone()) }
    }

    /// In words; `None`: all is well.
    pub(crate) fn text(&self) -> Option<String> {
        lock(&self.said).text.clone()
    }

    /// Adds to it, and notes it in run.json.
    pub(crate) fn add(&self, text: &str) {
        {
            let mut said = lock(&self.said);
            said.text = Some(said.text.take().map_or_else(|| text.to_owned(), |before| format!("{before}; {text}")));
            said.noted = false;
        }
        self.note();
    }

    /// Notes in run.json what does not stand there yet: the disk that stopped the recording may have had no room for that
    /// either. Called by the writer's thread, and by who ends the recording when that has ended.
    pub(crate) fn note(&self) {
        let said = lock(&self.said);
        let (Some(run), Some(text), false) = (&self.run, said.text.clone(), said.noted) else { return };
        // Whoever asks meanwhile must not wait for the disk.
        drop(said);
        let noted = run.amend_manifest(|manifest| manifest.trouble = Some(text.clone())).is_ok();
        let mut said = lock(&self.said);
        said.noted = noted && said.text.as_deref() == Some(&text);
    }
}
