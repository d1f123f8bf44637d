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

/// tch's word for an arithmetic.
#[must_use]
pub fn kind(dtype: Dtype) -> Kind {
    match dtype {
        Dtype::Bfloat16 => Kind::BFloat16,
        Dtype::Float32 => Kind::Float,
    }
}
