//! What the sampler of NVIDIA's management library (NVML) is told.

use std::time::Duration;

/// Which GPUs are sampled, and how often. `NvmlOptions::default()` has the defaults.
///
/// The counters are named after the framework's device: `gpu.cuda:0.utilization`, `gpu.cuda:0.power`, ….
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NvmlOptions {
    /// How often utilisation, memory, power, clocks, temperature and throttle reasons are read; at most five times a
    /// second, since NVML itself measures no faster. `None`: NVML is not even loaded. Default: each second.
    pub every: Option<Duration>,
    /// How often total energy and NVLink's counters are read, which cost milliseconds. Default: every 10 s.
    pub slow_every: Duration,
    /// Whether PCIe throughput is read too: one call blocks its thread for 20 ms, so that the calls for all devices and
    /// both directions are spread over `slow_every`, or longer: one at most between two readings of `every`. Default: no.
    pub pcie: bool,
    /// The framework's devices. Empty (the default): those that `CUDA_VISIBLE_DEVICES` makes visible, numbered as CUDA
    /// numbers them; that is a guess where a machine's GPUs differ and `CUDA_DEVICE_ORDER` is not `PCI_BUS_ID`.
    pub devices: Vec<GpuDevice>,
    /// Whether the machine's other GPUs are sampled too, as `gpu.nvml:<index>.…`. Default: no.
    pub all_devices: bool,
}

impl Default for NvmlOptions {
    fn default() -> Self {
        Self {
            every: Some(Duration::from_secs(1)),
            slow_every: Duration::from_secs(10),
            pcie: false,
            devices: Vec::new(),
            all_devices: false,
        }
    }
}

/// A device as the framework names it, and which GPU it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GpuDevice {
    /// The framework's name, e.g. `cuda:0`.
    pub name: String,
    /// The GPU: its UUID (`GPU-…`, or without `GPU-`), that of a MIG device (`MIG-…`), the beginning of either if no
    /// other has it, or an address on the PCI bus (`0000:65:00.0`).
    pub id: String,
}
