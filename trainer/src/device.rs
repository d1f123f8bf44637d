//! Which device a worker uses.

use crate::config::{DeviceChoice, Dtype};
use crate::error::TrainError;
use dflash_torch::{gpu_count, is_pinned, load_cuda, pinned};
use tch::{Device, Kind, Tensor, kind::Element};

/// The device that a configuration asks for, in the only process.
///
/// # Errors
/// As [`resolve_at`].
pub fn resolve(choice: DeviceChoice) -> Result<Device, TrainError> {
    resolve_at(choice, 0)
}

/// The device that a configuration asks for, in the process of a number on its host.
///
/// # Errors
/// It asks for a GPU that is not there; the error says why.
pub fn resolve_at(choice: DeviceChoice, local_rank: usize) -> Result<Device, TrainError> {
    let library = load_cuda();
    let gpus = gpu_count();
    match choice {
        DeviceChoice::Cpu => Ok(Device::Cpu),
        DeviceChoice::Auto if gpus == 0 => Ok(Device::Cpu),
        DeviceChoice::Auto | DeviceChoice::OwnCuda => resolve(DeviceChoice::Cuda(local_rank)),
        DeviceChoice::Cuda(n) if n < gpus => Ok(Device::Cuda(n)),
        DeviceChoice::Sim(n) => Err(TrainError::Device {
            device: format!("sim:{n}"),
            why: "a simulated device computes nothing: only `dflash train` knows it".to_owned(),
        }),
        DeviceChoice::Cuda(n) => Err(TrainError::Device { device: format!("cuda:{n}"), why: library.why_not(gpus) }),
    }
}

/// Numbers of the host as a tensor `[n]` on `device`. The caller does not wait for the device, as it would for a copy from
/// memory that the system may move.
pub fn upload<T: Element>(numbers: &[T], device: Device) -> Tensor {
    let tensor = Tensor::from_slice(numbers);
    if device == Device::Cpu {
        return tensor;
    }
    let kind = tensor.kind();
    match pinned(&tensor.size(), kind) {
        Ok(mut pages) => {
            pages.copy_(&tensor);
            pages.to_device_(device, kind, true, false)
        }
        Err(_) => tensor.to_device(device),
    }
}

/// A tensor on `device`. The caller does not wait for a GPU that it goes to: what is in memory that the system may move is
/// copied to pinned memory first.
pub fn place(tensor: &Tensor, device: Device) -> Tensor {
    if tensor.device() == device || !device.is_cuda() {
        return tensor.to_device(device);
    }
    pin(tensor).to_device_(device, tensor.kind(), true, false)
}

/// A tensor of main memory in pinned memory, from libtorch's own cache of it; as it is, where that cannot be had.
pub fn pin(tensor: &Tensor) -> Tensor {
    if tensor.device() != Device::Cpu || is_pinned(tensor).unwrap_or(false) {
        return tensor.shallow_clone();
    }
    match pinned(&tensor.size(), tensor.kind()) {
        Ok(mut pages) => {
            pages.copy_(tensor);
            pages
        }
        Err(_) => tensor.shallow_clone(),
    }
}

/// The arithmetic that a configuration asks for, of a model on `device`.
#[must_use]
pub fn kind(dtype: Dtype, device: Device) -> Kind {
    match dtype {
        Dtype::Bfloat16 => Kind::BFloat16,
        Dtype::Float32 => Kind::Float,
        Dtype::Auto if device != Device::Cpu || cpu_bfloat16().is_some() => Kind::BFloat16,
        Dtype::Auto => Kind::Float,
    }
}

/// The instructions by which this CPU multiplies bfloat16 numbers; `None`: it has none, and float32 is faster.
#[must_use]
pub fn cpu_bfloat16() -> Option<&'static str> {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    [("amx_bf16", "AMX"), ("avx512_bf16", "AVX-512")].into_iter().find(|(flag, _)| has(flag)).map(|(_, name)| name)
}
