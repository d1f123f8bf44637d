//! All sampled devices, turn by turn.

use std::time::Duration;

use dflash_timeline::record::Severity;

use super::asker::{Asker, Clocks};
use super::device::Device;
use super::gpus::{Fault, Gpu, Gpus, Query};
use super::select::select;
use super::tiers::{Tier, Tiers};
use super::visible::Visible;
use crate::NvmlOptions;
use crate::on::samplers::sink::Sink;

/// A sampler of GPUs that goes on.
#[derive(Debug)]
pub(crate) struct Watch<G> {
    asker: Asker<G>,
    devices: Vec<Device>,
    tiers: Tiers,
    /// Everything that may be asked.
    wanted: Vec<Query>,
    /// PCIe calls so far: whose turn it is.
    pcie_turn: usize,
}

impl<G: Gpus> Watch<G> {
    /// Finds the devices and asks each of them everything once. `None`: there is nothing to sample, which was said.
    pub(crate) fn start(
        gpus: G,
        clocks: Clocks,
        (every, options): (Duration, &NvmlOptions),
        environment: &Visible,
        sink: &mut dyn Sink,
    ) -> Option<Self> {
        let mut asker = Asker::new(gpus, clocks);
        asker.record_cost(sink);
        let devices = find_devices(&mut asker, options, environment, sink)?;
        let pcie: &[Query] = if options.pcie { &Query::PCIE } else { &[] };
        let wanted = [&Query::FAST[..], &Query::SLOW, pcie].concat();
        let calls = u32::try_from(devices.len() * pcie.len()).unwrap_or(u32::MAX);
        let tiers = Tiers::new(every, options, calls);
        let mut watch = Self { asker, devices, tiers, wanted, pcie_turn: 0 };
        for device in &mut watch.devices {
            device.probe(&watch.wanted, &mut watch.asker, sink);
        }
        sink.mark(Severity::Info, watch.introduction());
        watch.asker.record_cost(sink);
        Some(watch)
    }

    /// How long nothing is to be done.
    pub(crate) fn rest(&self) -> Duration {
        self.tiers.rest(self.asker.now())
    }

    /// Does one thing that is due. If more is, there is no rest before it.
    pub(crate) fn turn(&mut self, sink: &mut dyn Sink) {
        let Some(tier) = self.tiers.due(self.asker.now()) else { return };
        match tier {
            Tier::Fast => {
                self.read(&Query::FAST, sink);
                self.asker.record_cost(sink);
            }
            Tier::Slow => self.read(&Query::SLOW, sink),
            Tier::Pcie => self.pcie(sink),
        }
        self.tiers.done(tier, self.asker.now());
    }

    /// The last readings, so that a short run has some, and every run its energy to the end.
    pub(crate) fn last(&mut self, sink: &mut dyn Sink) {
        self.read(&Query::FAST, sink);
        self.read(&Query::SLOW, sink);
        self.asker.record_cost(sink);
    }

    fn read(&mut self, tier: &[Query], sink: &mut dyn Sink) {
        for device in &mut self.devices {
            device.turn(tier, &self.wanted, &mut self.asker, sink);
        }
    }

    /// One call, of the next device and direction that can be asked.
    fn pcie(&mut self, sink: &mut dyn Sink) {
        let calls = self.devices.len() * Query::PCIE.len();
        for _ in 0..calls {
            let turn = self.pcie_turn % calls;
            self.pcie_turn += 1;
            let (device, query) = (&mut self.devices[turn / Query::PCIE.len()], Query::PCIE[turn % Query::PCIE.len()]);
            if device.lives() && device.knows(query) {
                device.turn(&[query], &self.wanted, &mut self.asker, sink);
                return;
            }
        }
    }

    /// What is sampled, and what is not because a device does not know it.
    fn introduction(&self) -> String {
        let driver = self.asker.gpus.driver().map_or(String::new(), |version| format!(" (driver {version})"));
        let devices = self.devices.iter().map(|device| {
            let lacks: Vec<_> = device.lacks.iter().map(|query| query.words()).collect();
            if lacks.is_empty() {
                device.label.clone()
            } else {
                format!("{}, without {}", device.label, lacks.join(", "))
            }
        });
        format!("NVML{driver} samples {}", devices.collect::<Vec<_>>().join("; "))
    }
}

/// The devices to sample, not asked yet.
fn find_devices<G: Gpus>(
    asker: &mut Asker<G>,
    options: &NvmlOptions,
    environment: &Visible,
    sink: &mut dyn Sink,
) -> Option<Vec<Device>> {
    let listing = match asker.gpus.list() {
        Ok(listing) => listing,
        Err(fault) => {
            let why = match fault {
                Fault::Unsupported => "NVML cannot list them".to_owned(),
                Fault::Lost(why) | Fault::Failed(why) => why,
            };
            sink.mark(Severity::Warning, format!("no GPU is sampled: {why}"));
            return None;
        }
    };
    listing.problems.into_iter().for_each(|problem| sink.mark(Severity::Warning, problem));
    let selection = select(&listing.gpus, options, environment);
    selection.notes.into_iter().for_each(|note| sink.mark(Severity::Info, note));
    selection.warnings.into_iter().for_each(|warning| sink.mark(Severity::Warning, warning));
    if selection.chosen.is_empty() {
        let text = format!("no GPU is sampled: of the machine's {} this process uses none", listing.gpus.len());
        sink.mark(Severity::Info, text);
        return None;
    }
    let device = |(name, gpu): (String, usize)| {
        let Gpu { uuid, pci, model, .. } = &listing.gpus[gpu];
        let label = format!("{name} ({model}, {uuid} at {pci})");
        Device::new(name, gpu, label)
    };
    Some(selection.chosen.into_iter().map(device).collect())
}
