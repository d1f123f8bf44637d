//! CUDA's devices by its environment: what `CUDA_VISIBLE_DEVICES` leaves, in the order of `CUDA_DEVICE_ORDER`.

use std::collections::HashSet;

use super::gpus::{Gpu, Part};
use super::select::{Selection, by_bus, find, parts};

/// What the environment says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Visible {
    /// `CUDA_VISIBLE_DEVICES`.
    pub devices: Option<String>,
    /// `CUDA_DEVICE_ORDER`.
    pub order: Option<String>,
}

impl Visible {
    pub(crate) fn from_environment() -> Self {
        let read = |name| std::env::var(name).ok();
        Self { devices: read("CUDA_VISIBLE_DEVICES"), order: read("CUDA_DEVICE_ORDER") }
    }
}

/// Chooses the devices that CUDA shows to this process, as `cuda:0`, `cuda:1`, ….
pub(super) fn visible(gpus: &[Gpu], environment: &Visible, selection: &mut Selection) {
    let order = by_bus(gpus);
    let devices = match &environment.devices {
        Some(list) => listed(gpus, &order, list, selection),
        None => unlisted(gpus, &order),
    };
    if guessed(gpus, &order, environment, devices.len()) {
        selection.notes.push(
            "which GPU is cuda:0 is a guess, since the GPUs differ and CUDA puts the fastest first: set \
             CUDA_DEVICE_ORDER=PCI_BUS_ID to be sure"
                .to_owned(),
        );
    }
    let named = devices.into_iter().enumerate().map(|(number, gpu)| (format!("cuda:{number}"), gpu));
    selection.chosen.extend(named);
}

/// Without a list CUDA takes all GPUs; but if any is divided (MIG), the first part alone, and no whole GPU beside it.
fn unlisted(gpus: &[Gpu], order: &[usize]) -> Vec<usize> {
    match order.iter().find_map(|whole| parts(gpus, *whole).next()) {
        Some(part) => vec![part],
        None => order.iter().copied().filter(|gpu| gpus[*gpu].part == Part::Whole).collect(),
    }
}

/// Entries up to the first that names nothing, or what is there already: CUDA ignores the rest, and so is it here.
fn listed(gpus: &[Gpu], order: &[usize], list: &str, selection: &mut Selection) -> Vec<usize> {
    let (mut devices, mut seen) = (Vec::new(), HashSet::new());
    for entry in list.split(',').map(str::trim) {
        let device = match entry_of(gpus, order, entry) {
            Ok(gpu) if seen.insert(gpu) => gpu,
            Ok(_) => {
                selection.notes.push(format!("CUDA_VISIBLE_DEVICES={list} names {entry} twice: it ends there"));
                break;
            }
            // How one says "none".
            Err(_) if ["", "-1", "NoDevFiles", "none", "void"].contains(&entry) => break,
            Err(problem) => {
                selection.notes.push(format!("CUDA_VISIBLE_DEVICES={list} ends at {entry:?}: {problem}"));
                break;
            }
        };
        devices.push(device);
    }
    devices
}

/// A GPU by its number or UUID; of one that is divided, its first part.
fn entry_of(gpus: &[Gpu], order: &[usize], entry: &str) -> Result<usize, String> {
    let gpu = if entry.starts_with("GPU-") || entry.starts_with("MIG-") {
        find(gpus, entry)?
    } else {
        let number: usize = entry.parse().map_err(|_| "it is neither a number nor a UUID".to_owned())?;
        *order.get(number).ok_or_else(|| format!("there are {} GPUs", order.len()))?
    };
    if gpus[gpu].part != Part::Divided {
        return Ok(gpu);
    }
    parts(gpus, gpu).next().ok_or_else(|| "the GPU is divided (MIG) and has no part yet".to_owned())
}

/// Whether CUDA's own order is needed and not known.
fn guessed(gpus: &[Gpu], order: &[usize], environment: &Visible, devices: usize) -> bool {
    let by_uuid = |list: &String| list.split(',').all(|entry| entry.trim().contains('-'));
    let differ = order.windows(2).any(|pair| gpus[pair[0]].model != gpus[pair[1]].model);
    let by_bus = environment.order.as_deref() == Some("PCI_BUS_ID");
    differ && !by_bus && devices > 0 && !environment.devices.as_ref().is_some_and(by_uuid)
}
