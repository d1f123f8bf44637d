//! Which checkpoints stay: the newest, and the best by tau.

use super::{CheckpointError, EVAL_JSON, Snapshot, State, load, read_state};
use std::fs;
use std::path::{Path, PathBuf};

/// A checkpoint on the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its directory.
    pub path: PathBuf,
    /// Its figures.
    pub state: State,
    /// Acceptance length that an evaluation of it has found.
    pub tau: Option<f64>,
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
            Ok(state) => stored.push(Stored { tau: tau(&path), path, state }),
            Err(error) => damaged.push(error),
        }
    }
    stored.sort_by_key(|stored| stored.state.step);
    (stored, damaged)
}

fn tau(dir: &Path) -> Option<f64> {
    let text = fs::read_to_string(dir.join(EVAL_JSON)).ok()?;
    serde_json::from_str::<serde_json::Value>(&text).ok()?["tau"].as_f64()
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

/// The one with the largest acceptance length; `None`: none has been evaluated.
#[must_use]
pub fn best(stored: &[Stored]) -> Option<&Stored> {
    let evaluated = stored.iter().filter_map(|stored| Some((stored.tau?, stored)));
    evaluated.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, stored)| stored)
}

/// Removes all but the newest `keep` checkpoints and the best one by tau; 0 keeps all. Returns what could not be removed.
#[must_use]
pub fn prune(checkpoints: &Path, keep: usize) -> Vec<CheckpointError> {
    let (stored, _) = list(checkpoints);
    let best = best(&stored);
    let best = best.map(|s| s.path.clone());
    let old = if keep == 0 { 0 } else { stored.len().saturating_sub(keep) };
    let doomed = stored[..old].iter().filter(|s| Some(&s.path) != best.as_ref());
    doomed.filter_map(|s| fs::remove_dir_all(&s.path).map_err(CheckpointError::io("remove", &s.path)).err()).collect()
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
