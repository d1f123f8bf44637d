//! The images of our own kernels (kernels/*.py, compiled ahead by kernels/build.py), and where they can run.

use std::ffi::{CString, c_void};
use std::sync::OnceLock;

use tch::Device;

use crate::ffi::{self, RawKernel, answer};
use crate::{Result, TorchError, gpu_count};

/// A compiled kernel.
struct Image {
    name: &'static str,
    entry: &'static str,
    bytes: &'static [u8],
    shape: RawKernel,
}

macro_rules! image {
    ($name:literal, $entry:literal, $threads:literal, $shared:literal, [$tile:literal, $keys:literal]) => {
        Image {
            name: $name,
            entry: $entry,
            bytes: include_bytes!(concat!("../kernels/sm_90/", $name, ".cubin")),
            shape: RawKernel { threads: $threads, shared: $shared, tile: $tile, keys: $keys },
        }
    };
}

static IMAGES: &[Image] = &include!("../kernels/table.rs");

/// The instructions that the images are in: Hopper's.
const CAPABILITY: i32 = 90;

/// Whether our kernels run on `device`. Asked of the device once.
pub(crate) fn made_for(device: Device) -> bool {
    static GPUS: OnceLock<Vec<bool>> = OnceLock::new();
    let Device::Cuda(index) = device else { return false };
    let made = GPUS.get_or_init(|| {
        let registered = register().is_ok();
        (0..gpu_count()).map(|gpu| registered && capability(gpu).is_ok_and(|c| c == CAPABILITY)).collect()
    });
    made.get(index).copied().unwrap_or(false)
}

fn capability(gpu: usize) -> Result<i32> {
    let mut out = 0;
    let index = i16::try_from(gpu).unwrap_or(i16::MAX);
    // SAFETY: `out` is valid to write to; the answer goes to `answer` alone.
    unsafe { answer("a GPU's instructions", ffi::dflash_device_capability(index, &raw mut out)) }?;
    Ok(out)
}

fn register() -> Result<()> {
    for image in IMAGES {
        let text = |words: &str| CString::new(words).map_err(|_| bad_name());
        let (name, entry) = (text(image.name)?, text(image.entry)?);
        let bytes: *const c_void = image.bytes.as_ptr().cast();
        // SAFETY: both names are alive for the call and the image for ever; the answer goes to `answer` alone.
        unsafe {
            answer(
                "registering a kernel",
                ffi::dflash_kernel_register(name.as_ptr(), entry.as_ptr(), bytes, image.shape),
            )
        }?;
    }
    Ok(())
}

#[cold]
fn bad_name() -> TorchError {
    TorchError::Torch { doing: "registering a kernel", words: "its name has a NUL".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_is_an_elf_file_that_holds_its_entry() {
        assert!(IMAGES.len() > 20);
        for image in IMAGES {
            assert_eq!(&image.bytes[..4], b"\x7fELF", "{}", image.name);
            let entry = image.entry.as_bytes();
            assert!(image.bytes.windows(entry.len()).any(|w| w == entry), "{} lacks {}", image.name, image.entry);
            assert!(image.shape.threads % 32 == 0 && image.shape.threads > 0);
        }
        register().unwrap();
    }

    #[test]
    fn no_kernel_is_for_the_cpu() {
        assert!(!made_for(Device::Cpu));
        assert!(!made_for(Device::Cuda(1000)));
    }
}
