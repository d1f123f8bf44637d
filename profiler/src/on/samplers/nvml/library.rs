//! The GPUs as NVIDIA's management library knows them. It is loaded at run time.

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::error::{Bits, NvmlError};
use nvml_wrapper::{Device, Nvml};

use super::gpus::{Answer, Fault, Gpu, Gpus, Listing, Part, Query};

/// NVML, and a handle for each GPU and MIG device.
#[derive(Debug)]
pub(crate) struct Library<'nvml> {
    nvml: &'nvml Nvml,
    devices: Vec<Device<'nvml>>,
}

impl<'nvml> Library<'nvml> {
    pub(crate) fn new(nvml: &'nvml Nvml) -> Self {
        Self { nvml, devices: Vec::new() }
    }

    fn look(&mut self, device: Device<'nvml>, listing: &mut Listing) -> Result<(), NvmlError> {
        let (uuid, model, pci) = (device.uuid()?, device.name()?, device.pci_info()?.bus_id);
        // Most GPUs do not know the mode at all.
        let divided = device.mig_mode().is_ok_and(|mode| mode.current == 1);
        let (whole, count) = (listing.gpus.len(), if divided { device.mig_device_count().unwrap_or(0) } else { 0 });
        // Places may be empty.
        let parts: Vec<_> = (0..count).filter_map(|index| device.mig_device_by_index(index).ok()).collect();
        self.devices.push(device);
        let part = if divided { Part::Divided } else { Part::Whole };
        listing.gpus.push(Gpu { uuid, pci: pci.clone(), model: model.clone(), part });
        for part in parts {
            let Ok(uuid) = part.uuid() else { continue };
            let model = part.name().unwrap_or_else(|_| format!("MIG device of {model}"));
            self.devices.push(part);
            listing.gpus.push(Gpu { uuid, pci: pci.clone(), model, part: Part::Of(whole) });
        }
        Ok(())
    }
}

impl Gpus for Library<'_> {
    fn driver(&self) -> Option<String> {
        self.nvml.sys_driver_version().ok()
    }

    fn list(&mut self) -> Result<Listing, Fault> {
        let mut listing = Listing::default();
        for index in 0..self.nvml.device_count().map_err(fault)? {
            let looked = self.nvml.device_by_index(index).and_then(|device| self.look(device, &mut listing));
            if let Err(error) = looked {
                listing.problems.push(format!("the GPU with NVML's index {index} cannot be looked at: {error}"));
            }
        }
        Ok(listing)
    }

    fn ask(&mut self, gpu: usize, query: Query) -> Result<Answer, Fault> {
        let device = self.devices.get(gpu).ok_or(Fault::Unsupported)?;
        ask(device, query).map_err(fault)
    }
}

fn ask(device: &Device<'_>, query: Query) -> Result<Answer, NvmlError> {
    let one = |value: f64| [value, 0.0];
    let milli = |value: u32| one(f64::from(value) / 1e3);
    Ok(match query {
        Query::Utilization => {
            let rates = device.utilization_rates()?;
            [f64::from(rates.gpu), f64::from(rates.memory)]
        }
        Query::Memory => {
            let memory = device.memory_info()?;
            [memory.used as f64, memory.total as f64]
        }
        Query::Power => milli(device.power_usage()?),
        Query::PowerLimit => milli(device.enforced_power_limit()?),
        Query::SmClock => one(f64::from(device.clock_info(Clock::SM)?)),
        Query::MemoryClock => one(f64::from(device.clock_info(Clock::Memory)?)),
        Query::Temperature => one(f64::from(device.temperature(TemperatureSensor::Gpu)?)),
        Query::Throttle => one(bits(device.current_throttle_reasons_strict())? as f64),
        Query::Energy => one(device.total_energy_consumption()? as f64 / 1e3),
        Query::Nvlink => {
            let (sent, received) = dflash_sys::nvlink_bytes(device)?;
            [sent as f64, received as f64]
        }
        // In kB/s.
        Query::PcieRx => one(f64::from(device.pcie_throughput(PcieUtilCounter::Receive)?) * 1e3),
        Query::PcieTx => one(f64::from(device.pcie_throughput(PcieUtilCounter::Send)?) * 1e3),
    })
}

/// Bits that are newer than nvml-wrapper are numbers all the same.
fn bits(reasons: Result<ThrottleReasons, NvmlError>) -> Result<u64, NvmlError> {
    match reasons {
        Err(NvmlError::IncorrectBits(Bits::U64(bits))) => Ok(bits),
        Err(NvmlError::IncorrectBits(Bits::U32(bits))) => Ok(u64::from(bits)),
        other => other.map(|reasons| reasons.bits()),
    }
}

/// NVML_ERROR_GPU_NOT_FOUND, which nvml-wrapper does not know yet.
const GPU_NOT_FOUND: u32 = 28;

/// Sorts errors by what is to be done about them.
fn fault(error: NvmlError) -> Fault {
    match error {
        NvmlError::NotSupported
        | NvmlError::NoPermission
        | NvmlError::InvalidArg
        | NvmlError::FunctionNotFound
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::VgpuEccNotSupported => Fault::Unsupported,
        NvmlError::GpuLost | NvmlError::ResetRequired => Fault::Lost(error.to_string()),
        NvmlError::UnexpectedVariant(GPU_NOT_FOUND) => Fault::Lost("NVML no longer finds the GPU".to_owned()),
        NvmlError::UnexpectedVariant(code) => Fault::Failed(format!("NVML answers {code}, which is not known here")),
        other => Fault::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use nvml_wrapper::bitmasks::device::ThrottleReasons;
    use nvml_wrapper::error::{Bits, NvmlError};

    use super::{Fault, bits, fault};

    #[test]
    fn bits_that_the_wrapper_does_not_know_are_kept() {
        assert_eq!(bits(Ok(ThrottleReasons::SW_POWER_CAP)).unwrap(), 4);
        assert_eq!(bits(Err(NvmlError::IncorrectBits(Bits::U64(1 << 40 | 4)))).unwrap(), 1 << 40 | 4);
        assert!(matches!(bits(Err(NvmlError::GpuLost)), Err(NvmlError::GpuLost)));
    }

    #[test]
    fn errors_are_sorted() {
        assert_eq!(fault(NvmlError::NotSupported), Fault::Unsupported);
        assert_eq!(fault(NvmlError::FailedToLoadSymbol("nvmlX".to_owned())), Fault::Unsupported);
        assert!(matches!(fault(NvmlError::GpuLost), Fault::Lost(text) if text.contains("fell off the bus")));
        assert!(matches!(fault(NvmlError::from(28)), Fault::Lost(_)), "nvmlReturn_t is newer than the wrapper");
        assert!(matches!(fault(NvmlError::from(4711)), Fault::Failed(text) if text.contains("4711")));
        assert!(matches!(fault(NvmlError::Unknown), Fault::Failed(_)));
    }
}
