//! Which checkpoints stay: the newest, and the best by tau.

use super::files::remove_directory;
use super::{CheckpointError, EVAL_JSON, STATE_TENSORS, Snapshot, State, load, read_state, seems_whole};
use crate::disk;
use std::fs;
use std::path::{Path, PathBuf};

/// A checkpoint on the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its directory.
    pub path: PathBuf,
    /// Its figures.
    pub state: State,
    /// What an evaluation of it has found.
    pub measured: Option<Measured>,
}

/// An acceptance length, and how it was found: others are not comparable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Acceptance length.
    pub tau: f64,
    /// Prompts that were answered; `None`: not known.
    pub prompts: Option<u64>,
    /// Temperature; `None`: not known.
    pub temperature: Option<f64>,
}

impl Measured {
    fn like(&self, other: &Self) -> bool {
        (self.prompts, self.temperature) == (other.prompts, other.temperature)
    }
}

/// A run's whole checkpoints, oldest step first, and what is wrong with the others.
#[must_use]
pub fn list(checkpoints: &Path) -> (Vec<Stored>, Vec<CheckpointError>) {
    let (mut stored, mut damaged) = (Vec::new(), Vec::new());
    for path in fs::read_dir(checkpoints).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.strip_prefix("step-").is_some_and(|step| step.bytes().all(|b| b.is_ascii_digit())) {
            continue;
        }
        match read_state(&path) {
            Ok(state) => stored.push(Stored { measured: measured(&path), path, state }),
            Err(error) => damaged.push(error),
        }
    }
    stored.sort_by_key(|stored| stored.state.step);
    (stored, damaged)
}

/// Writes what an evaluation of a checkpoint has found into it.
///
/// # Errors
/// The disk refuses; what was there before still is.
pub fn write_figures(dir: &Path, figures: &serde_json::Value) -> Result<(), CheckpointError> {
    let path = dir.join(EVAL_JSON);
    disk::replace(&path, &(figures.to_string() + "\n")).map_err(CheckpointError::io("write", &path))
}

fn measured(dir: &Path) -> Option<Measured> {
    let text = fs::read_to_string(dir.join(EVAL_JSON)).ok()?;
    let json: serde_json::Value = serde_json::from_str(&text).ok()?;
    let (prompts, temperature) = (json["prompts"].as_u64(), json["temperature"].as_f64());
    Some(Measured { tau: json["tau"].as_f64()?, prompts, temperature })
}

/// Reads the newest checkpoint that is whole, and says what is wrong with those that are newer.
///
/// # Errors
/// There is none.
pub fn newest(checkpoints: &Path) -> Result<(PathBuf, Snapshot, Vec<CheckpointError>), CheckpointError> {
    let (stored, mut damaged) = list(checkpoints);
    for one in stored.into_iter().rev() {
        match load(&one.path) {
            Ok(snapshot) => return Ok((one.path, snapshot, damaged)),
            Err(error) => damaged.push(error),
        }
    }
    let damaged = damaged.iter().map(|error| format!("; {error}")).collect();
    Err(CheckpointError::None { path: checkpoints.into(), damaged })
}

/// Renames the checkpoints that [`newest`] passed over to `step-NNNNNN.damaged`: they would count as the newest ones for
/// ever. Nothing is removed. Returns what could not be renamed.
#[must_use]
pub fn set_aside(damaged: &[CheckpointError]) -> Vec<CheckpointError> {
    let dirs = damaged.iter().filter_map(|error| error.unusable()?.parent());
    let rename = |dir: &Path| {
        let name = |count: usize| {
            dir.with_extension(format!("damaged{}", if count > 0 { count.to_string() } else { String::new() }))
        };
        let free = (0..).map(name).find(|name| !name.exists()).unwrap_or_default();
        fs::rename(dir, free).map_err(CheckpointError::io("set aside", dir)).err()
    };
    dirs.filter_map(rename).collect()
}

/// The one with the largest acceptance length; `None`: none has been evaluated. Only evaluations of as many prompts at the
/// same temperature are compared: those of which there are most, or else the newest checkpoint's.
#[must_use]
pub fn best(stored: &[Stored]) -> Option<&Stored> {
    let evaluated: Vec<_> = stored.iter().filter_map(|stored| Some((stored.measured?, stored))).collect();
    let alike = |how: &Measured| evaluated.iter().filter(|(other, _)| other.like(how)).count();
    // Of several the last is the newest.
    let (how, _) = evaluated.iter().max_by_key(|(how, _)| alike(how))?;
    let comparable = evaluated.iter().filter(|(other, _)| other.like(how));
    comparable.max_by(|(a, _), (b, _)| a.tau.total_cmp(&b.tau)).map(|(_, stored)| *stored)
}

/// Removes all but the newest `keep` checkpoints and the best one by tau; 0 keeps all. One that is torn is not counted, and
/// the one that was written last stays in any case. Returns what could not be removed.
#[must_use]
pub fn prune(checkpoints: &Path, keep: usize) -> Vec<CheckpointError> {
    let (mut stored, _) = list(checkpoints);
    stored.retain(|s| seems_whole(&s.path.join(STATE_TENSORS)));
    let kept = [best(&stored), stored.iter().max_by_key(|s| s.state.saved_unix_ns)].map(|s| s.map(|s| s.path.clone()));
    let old = if keep == 0 { 0 } else { stored.len().saturating_sub(keep) };
    let doomed = stored[..old].iter().filter(|s| !kept.iter().flatten().any(|kept| *kept == s.path));
    doomed.filter_map(|s| remove_directory(&s.path).err()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Tensor;

    fn save(checkpoints: &Path, step: usize, tau: Option<f64>) -> PathBuf {
        let dir = super::super::directory(checkpoints, step);
        let state = State { step, ..State::default() };
        let tensors = [("w".to_owned(), Tensor::from(step as f32))];
        super::super::write(&dir, &state, &tensors, |_| Ok(())).unwrap();
        if let Some(tau) = tau {
            fs::write(dir.join(EVAL_JSON), format!("{{\"tau\": {tau}}}")).unwrap();
        }
        dir
    }

    #[test]
    fn the_newest_and_the_best_stay() {
        let place = tempfile::tempdir().unwrap();
        for (step, tau) in [(10, Some(1.5)), (20, Some(2.5)), (30, Some(2.0)), (40, None), (1_000_000, None)] {
            save(place.path(), step, tau);
        }
        fs::create_dir(place.path().join("export")).unwrap();
        assert!(prune(place.path(), 2).is_empty());
        let steps: Vec<_> = list(place.path()).0.iter().map(|s| s.state.step).collect();
        assert_eq!(steps, [20, 40, 1_000_000]);
        assert!(prune(place.path(), 0).is_empty());
        assert_eq!(list(place.path()).0.len(), 3);
        assert!(place.path().join("export").is_dir());
    }

    #[test]
    fn only_evaluations_of_the_same_kind_are_compared() {
        let one = |step: usize, tau: f64, prompts: u64, temperature: f64| {
            let measured = Some(Measured { tau, prompts: Some(prompts), temperature: Some(temperature) });
            Stored { path: PathBuf::new(), state: State { step, ..State::default() }, measured }
        };
        let step = |stored: &[Stored]| best(stored).map(|s| s.state.step);
        let most = [one(1, 2.0, 40, 0.0), one(2, 2.5, 40, 0.0), one(3, 9.0, 3, 0.0), one(4, 8.0, 40, 1.0)];
        assert_eq!(step(&most), Some(2));
        assert_eq!(step(&[one(1, 9.0, 3, 0.0), one(2, 2.5, 40, 0.0)]), Some(2), "as many of each: the newest counts");
        let unknown = Stored { path: PathBuf::new(), state: State::default(), measured: None };
        assert_eq!(step(&[unknown]), None);
    }

    #[test]
    fn a_damaged_newest_does_not_cost_the_good_ones() {
        let place = tempfile::tempdir().unwrap();
        save(place.path(), 10, None);
        let torn = save(place.path(), 30, None).join(STATE_TENSORS);
        let whole = fs::read(&torn).unwrap();
        fs::write(&torn, &whole[..whole.len() - 1]).unwrap();
        // As it is, it does not count; and what is newest by its time stays.
        assert!(prune(place.path(), 1).is_empty());
        let steps = || list(place.path()).0.iter().map(|s| s.state.step).collect::<Vec<_>>();
        assert_eq!(steps(), [10, 30]);

        // Damaged within, so that only its checksum says so: resuming sets it aside.
        let mut flipped = whole;
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(&torn, flipped).unwrap();
        let (path, _, damaged) = newest(place.path()).unwrap();
        assert!(path.ends_with("step-000010") && damaged.len() == 1, "{damaged:?}");
        assert!(set_aside(&damaged).is_empty());
        assert!(place.path().join("step-000030.damaged").join(STATE_TENSORS).is_file());
        save(place.path(), 20, None);
        assert!(prune(place.path(), 1).is_empty());
        assert_eq!(steps(), [20]);
        assert_eq!(newest(place.path()).unwrap().1.state.step, 20);
    }

    #[test]
    fn a_damaged_newest_gives_way_to_the_one_before() {
        let place = tempfile::tempdir().unwrap();
        save(place.path(), 1, None);
        let torn = save(place.path(), 2, None).join(super::super::STATE_TENSORS);
        let data = fs::read(&torn).unwrap();
        fs::write(&torn, &data[..data.len() - 2]).unwrap();
        fs::write(save(place.path(), 3, None).join(super::super::STATE_JSON), "{").unwrap();
        let (path, snapshot, damaged) = newest(place.path()).unwrap();
        assert!(path.ends_with("step-000001"));
        assert_eq!((snapshot.state.step, snapshot.tensors[0].1.double_value(&[]), damaged.len()), (1, 1.0, 2));
        fs::remove_dir_all(path).unwrap();
        let error = newest(place.path()).unwrap_err().to_string();
        assert!(error.contains("no checkpoint to resume from; ") && error.contains("is damaged"), "{error}");
    }
}
