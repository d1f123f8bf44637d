//! Which GPUs are sampled, and under which names.

use std::collections::HashSet;

use super::gpus::{Gpu, Part};
use super::visible::{Visible, visible};
use crate::{GpuDevice, NvmlOptions};

/// The GPUs to sample: name and number in the list; and what is to be said about the choice.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub chosen: Vec<(String, usize)>,
    /// Worth knowing.
    pub notes: Vec<String>,
    /// Something that was asked for is missing.
    pub warnings: Vec<String>,
}

/// Matches the framework's devices to the machine's GPUs.
pub(crate) fn select(gpus: &[Gpu], options: &NvmlOptions, environment: &Visible) -> Selection {
    let mut selection = Selection::default();
    if options.devices.is_empty() {
        visible(gpus, environment, &mut selection);
    } else {
        options.devices.iter().for_each(|device| named(gpus, device, &mut selection));
    }
    if options.all_devices {
        others(gpus, &mut selection);
    }
    selection
}

/// A device whose GPU the caller knows.
fn named(gpus: &[Gpu], device: &GpuDevice, selection: &mut Selection) {
    let GpuDevice { name, id } = device;
    match find(gpus, id) {
        Ok(gpu) => {
            if gpus[gpu].part == Part::Divided {
                let note = format!("{name} ({id}) is divided (MIG): the whole GPU is sampled, not the part in use");
                selection.notes.push(note);
            }
            selection.chosen.push((name.clone(), gpu));
        }
        Err(problem) => selection.warnings.push(format!("{name} is not sampled: {problem}")),
    }
}

/// What is not chosen, by its place on the bus: `nvml:3`, and `nvml:3.0` for its first MIG device.
fn others(gpus: &[Gpu], selection: &mut Selection) {
    let chosen: HashSet<usize> = selection.chosen.iter().map(|(_, gpu)| *gpu).collect();
    for (index, whole) in by_bus(gpus).into_iter().enumerate() {
        let parts = parts(gpus, whole).enumerate().map(|(part, gpu)| (format!("nvml:{index}.{part}"), gpu));
        let all = std::iter::once((format!("nvml:{index}"), whole)).chain(parts);
        selection.chosen.extend(all.filter(|(_, gpu)| !chosen.contains(gpu)));
    }
}

/// GPUs without their parts, in the order of the bus.
pub(super) fn by_bus(gpus: &[Gpu]) -> Vec<usize> {
    let mut wholes: Vec<usize> = (0..gpus.len()).filter(|gpu| !matches!(gpus[*gpu].part, Part::Of(_))).collect();
    // An address that cannot be read comes last; NVML's own order decides between equals.
    wholes.sort_by_key(|gpu| address(&gpus[*gpu].pci).map_or((true, (0, 0, 0)), |address| (false, address)));
    wholes
}

/// MIG devices of a GPU.
pub(super) fn parts(gpus: &[Gpu], whole: usize) -> impl Iterator<Item = usize> + '_ {
    (0..gpus.len()).filter(move |gpu| gpus[*gpu].part == Part::Of(whole))
}

/// The one GPU or MIG device with this UUID, beginning of a UUID, or address on the bus.
pub(super) fn find(gpus: &[Gpu], id: &str) -> Result<usize, String> {
    if let Some(wanted) = address(id) {
        let found = by_bus(gpus).into_iter().find(|gpu| address(&gpus[*gpu].pci) == Some(wanted));
        return found.ok_or_else(|| format!("no GPU has the address {id}"));
    }
    let wanted = id.to_ascii_lowercase();
    let prefixed = wanted.starts_with("gpu-") || wanted.starts_with("mig-");
    // Some frameworks give a UUID without what kind of one it is.
    let wanted = if prefixed { wanted } else { format!("gpu-{wanted}") };
    let uuid = |gpu: &usize| gpus[*gpu].uuid.to_ascii_lowercase();
    let mut found = (0..gpus.len()).filter(|gpu| uuid(gpu).starts_with(&wanted)).peekable();
    let Some(first) = found.next() else { return Err(format!("no GPU has the UUID {id}")) };
    // "MIG-GPU-1/1/1" is whole and also the beginning of "MIG-GPU-1/1/10".
    match (0..gpus.len()).find(|gpu| uuid(gpu) == wanted) {
        Some(exact) => Ok(exact),
        None if found.peek().is_some() => Err(format!("the UUIDs of several GPUs begin with {id}")),
        None => Ok(first),
    }
}

/// Domain, bus and device of `00000000:65:00.0`, whose domain may have four digits, eight or be left out.
fn address(text: &str) -> Option<(u32, u32, u32)> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let (domain, bus, device) = match *text.split(':').collect::<Vec<_>>() {
        [domain, bus, device] => (number(domain)?, bus, device),
        [bus, device] => (0, bus, device),
        _ => return None,
    };
    let device = device.split_once('.').map_or(device, |(device, _function)| device);
    Some((domain, number(bus)?, number(device)?))
}
