//! What is asked of GPUs, as a trait: NVIDIA's library answers it, or a simulation.

/// One question to one GPU, and so one call of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    Utilization,
    Memory,
    Power,
    PowerLimit,
    SmClock,
    MemoryClock,
    Temperature,
    Throttle,
    Energy,
    Nvlink,
    PcieRx,
    PcieTx,
}

/// What an answer holds: the value of each of the query's series.
pub(crate) type Answer = [f64; 2];

impl Query {
    /// Tens of microseconds each.
    pub(crate) const FAST: [Self; 8] = [
        Self::Utilization,
        Self::Memory,
        Self::Power,
        Self::PowerLimit,
        Self::SmClock,
        Self::MemoryClock,
        Self::Temperature,
        Self::Throttle,
    ];
    /// Milliseconds each.
    pub(crate) const SLOW: [Self; 2] = [Self::Energy, Self::Nvlink];
    /// 20 milliseconds each.
    pub(crate) const PCIE: [Self; 2] = [Self::PcieRx, Self::PcieTx];

    /// What is asked for, in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Utilization => "utilisation",
            Self::Memory => "memory",
            Self::Power => "power",
            Self::PowerLimit => "power limit",
            Self::SmClock => "SM clock",
            Self::MemoryClock => "memory clock",
            Self::Temperature => "temperature",
            Self::Throttle => "throttle reasons",
            Self::Energy => "total energy",
            Self::Nvlink => "NVLink throughput",
            Self::PcieRx => "PCIe throughput received",
            Self::PcieTx => "PCIe throughput sent",
        }
    }

    /// Ends of the counters' names, and their units.
    pub(crate) fn series(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Utilization => &[("utilization", "%"), ("utilization.memory", "%")],
            Self::Memory => &[("memory.used", "bytes"), ("memory.total", "bytes")],
            Self::Power => &[("power", "W")],
            Self::PowerLimit => &[("power.limit", "W")],
            Self::SmClock => &[("clock.sm", "MHz")],
            Self::MemoryClock => &[("clock.memory", "MHz")],
            Self::Temperature => &[("temperature", "°C")],
            Self::Throttle => &[("throttle", "bits")],
            Self::Energy => &[("energy", "J")],
            // The library gives bytes so far; two answers make a rate.
            Self::Nvlink => &[("nvlink.tx", "bytes/s"), ("nvlink.rx", "bytes/s")],
            Self::PcieRx => &[("pcie.rx", "bytes/s")],
            Self::PcieTx => &[("pcie.tx", "bytes/s")],
        }
    }
}

/// What the library knows of a GPU, or of a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gpu {
    /// `GPU-…`, or `MIG-…`.
    pub uuid: String,
    /// Domain, bus and device on the PCI bus, in hexadecimal with colons.
    pub pci: String,
    pub model: String,
    pub part: Part,
}

/// Whether it is a GPU or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// A GPU in MIG mode: programs use its parts.
    Divided,
    /// A MIG device of the GPU with this number in the list.
    Of(usize),
}

/// The machine's GPUs, MIG devices behind the GPU that they are a part of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub gpus: Vec<Gpu>,
    /// GPUs that could not be looked at, in words.
    pub problems: Vec<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There never will be one.
    Unsupported,
    /// The GPU is gone, in the library's words.
    Lost(String),
    /// Not this time, in the library's words.
    Failed(String),
}

/// A library that knows GPUs.
pub(crate) trait Gpus {
    /// The driver's version.
    fn driver(&self) -> Option<String>;

    /// All GPUs; asked once, before anything else.
    fn list(&mut self) -> Result<Listing, Fault>;

    /// Asks the GPU with this number in the list. May block.
    fn ask(&mut self, gpu: usize, query: Query) -> Result<Answer, Fault>;
}
