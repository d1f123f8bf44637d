//! What the GPUs are that this process sees, asked once.

use dflash_timeline::GpuDetails;
use nvml_wrapper::Nvml;

use super::Visible;
use super::gpus::{Gpus, Query};
use super::library::Library;
use super::select::select;
use crate::NvmlOptions;

/// The GPUs that CUDA shows to this process, in its order, as NVIDIA's management library knows them; none where that is
/// not there. Asking may take a good part of a second.
#[must_use]
pub fn gpu_details() -> Vec<GpuDetails> {
    Nvml::init().map(|nvml| details(Library::new(&nvml), &Visible::from_environment())).unwrap_or_default()
}

pub(super) fn details(mut gpus: impl Gpus, environment: &Visible) -> Vec<GpuDetails> {
    let Ok(listing) = gpus.list() else { return Vec::new() };
    let driver = gpus.driver();
    let chosen = select(&listing.gpus, &NvmlOptions::default(), environment).chosen;
    let known = chosen.into_iter().filter_map(|(device, place)| Some((device, place, listing.gpus.get(place)?)));
    let mut detail = |(device, place, gpu): (String, usize, &super::gpus::Gpu)| {
        let mut details = GpuDetails::default();
        (details.device, details.name, details.uuid) = (device, gpu.model.clone(), gpu.uuid.clone());
        details.memory_bytes = gpus.ask(place, Query::Memory).ok().map(|[_, total]| total as u64);
        details.driver.clone_from(&driver);
        details
    };
    known.map(&mut detail).collect()
}
