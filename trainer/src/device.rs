//! Which device a worker uses.

use crate::config::{DeviceChoice, Dtype};
use crate::error::TrainError;
use dflash_torch::{CudaLibrary, load_cuda};
use tch::{Cuda, Device, Kind};

/// The device that a configuration asks for.
///
/// # Errors
/// It asks for a GPU that is not there; the error says why.
pub fn resolve(choice: DeviceChoice) -> Result<Device, TrainError> {
    let library = load_cuda();
    let gpus = Cuda::device_count();
    match choice {
        DeviceChoice::Cpu => Ok(Device::Cpu),
        DeviceChoice::Auto if gpus > 0 => Ok(Device::Cuda(0)),
        DeviceChoice::Auto => Ok(Device::Cpu),
        DeviceChoice::Cuda(n) if (n as i64) < gpus => Ok(Device::Cuda(n)),
        DeviceChoice::Cuda(n) => Err(TrainError::Device { device: format!("cuda:{n}"), why: why_not(library, gpus) }),
    }
}

fn why_not(library: &CudaLibrary, gpus: i64) -> String {
    match library {
        CudaLibrary::Absent => "libtorch_cuda.so was not found; run scripts/libtorch --cuda".to_owned(),
        CudaLibrary::Failed { path, cause } => format!("{} could not be opened: {cause}", path.display()),
        CudaLibrary::Loaded(_) if gpus == 0 => "libtorch sees no GPU; is the driver running?".to_owned(),
        CudaLibrary::Loaded(_) => format!("there are {gpus} GPUs, numbered from 0"),
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
