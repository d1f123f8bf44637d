//! Stages that changed their name between the sides.

use super::side::{Clock, Side};
use super::{Call, Row};
use crate::error::{Error, Result};
use crate::stages::{RESIDUE, TOTAL};
use std::path::Path;

/// How close the medians of a missing and a new stage are that may be one.
const ALIKE: f64 = 1.25;

/// Names of side A with those of side B.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renames(Vec<(String, String)>);

impl Renames {
    /// Adds `OLD=NEW`.
    ///
    /// # Errors
    /// [`Error::Map`] if it is not of that form, or names a stage a second time.
    pub fn add(&mut self, text: &str) -> Result<()> {
        let error = |problem| Error::Map { map: crate::text::harmless(text), problem };
        let (old, new) = text.split_once('=').ok_or_else(|| error("write OLD=NEW"))?;
        let (old, new) = (old.trim(), new.trim());
        if old.is_empty() || new.is_empty() {
            return Err(error("write OLD=NEW"));
        }
        if [old, new].iter().any(|name| [TOTAL, RESIDUE].contains(name)) {
            return Err(error("`total` and `residue` are no stages"));
        }
        if self.0.iter().any(|(o, n)| o == old || n == new) {
            return Err(error("a stage is mapped twice"));
        }
        self.0.push((old.to_owned(), new.to_owned()));
        Ok(())
    }

    /// Adds a file's lines `OLD=NEW`; empty lines and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// If it cannot be read, or as [`add`](Self::add).
    pub fn add_file(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.into_iter().try_for_each(|line| self.add(line))
    }

    /// Gives side A's stages the names that side B has for them.
    ///
    /// # Errors
    /// [`Error::Map`] if A does not have the old name, B not the new one, or a lane of A has both.
    pub fn apply(&self, a: &mut Side, b: &Side) -> Result<()> {
        for (old, new) in &self.0 {
            let error = |problem| Error::Map { map: crate::text::harmless(&format!("{old}={new}")), problem };
            if !has(a, old) {
                return Err(error("side A has no stage of the old name"));
            }
            if !has(b, new) {
                return Err(error("side B has no stage of the new name"));
            }
            if !a.rename(old, new) {
                return Err(error("a lane of side A has stages of both names"));
            }
        }
        Ok(())
    }
}

fn has(side: &Side, stage: &str) -> bool {
    side.runs.iter().flat_map(|run| &run.keys).any(|key| key.stage == stage)
}

impl Side {
    /// Whether no lane had both names.
    fn rename(&mut self, old: &str, new: &str) -> bool {
        for run in &mut self.runs {
            for key in run.keys.iter_mut().filter(|key| key.stage == old) {
                let observed = run.observed.remove(key);
                new.clone_into(&mut key.stage);
                if observed.is_some_and(|observed| run.observed.insert(key.clone(), observed).is_some()) {
                    return false;
                }
            }
            for (stage, _) in run.lanes.iter_mut().flat_map(|lane| &mut lane.sums).filter(|(stage, _)| stage == old) {
                new.clone_into(stage);
            }
        }
        self.renamed.insert(new.to_owned(), old.to_owned());
        true
    }
}

/// Guesses which missing stages are new ones by another name: the only pair on a lane that takes about as long.
pub(super) fn guesses(rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    for lane in rows.chunk_by(|a, b| (a.key.rank, &a.key.lane) == (b.key.rank, &b.key.lane)) {
        let of = |call: Call| lane.iter().filter(move |row| row.call == call && row.key.clock == Clock::Host);
        let (Some(missing), Some(new)) = (only(of(Call::Missing)), only(of(Call::New))) else { continue };
        let (Some(was), Some(is)) = (missing.median_a_ns, new.median_b_ns) else { continue };
        if was.max(is) <= ALIKE * was.min(is) {
            let (old, new) = (crate::text::harmless(&missing.key.stage), crate::text::harmless(&new.key.stage));
            notes.push(format!("{old} and {new} take about as long: if one became the other, --map '{old}={new}'"));
        }
    }
    notes
}

fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next();
    if items.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests {
    use super::Renames;

    #[test]
    fn what_is_no_map_is_refused() {
        let mut renames = Renames::default();
        assert!(renames.add("a = b").is_ok());
        for bad in ["x", "=y", "x=", "a=c", "c=b", "total=x", "x=residue"] {
            assert!(renames.add(bad).is_err(), "{bad}");
        }
        assert_eq!(renames.0, [("a".to_owned(), "b".to_owned())]);
    }
}
