//! Where a worker runs.

use serde::{Deserialize, Serialize};

/// A device, written `auto`, `cpu`, `cuda`, `cuda:N` or `sim:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// As `cuda` where there is a GPU, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The first GPU; of several processes, the one of this process's number on its host.
    OwnCuda,
    /// A GPU by its number.
    Cuda(usize),
    /// A simulated device by its number.
    Sim(usize),
}

impl TryFrom<String> for DeviceChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::OwnCuda),
            "sim" => Ok(Self::Sim(0)),
            _ => text
                .split_once(':')
                .and_then(|(kind, n)| Some((kind, n.parse().ok()?)))
                .and_then(|(kind, n)| match kind {
                    "cuda" => Some(Self::Cuda(n)),
                    "sim" => Some(Self::Sim(n)),
                    _ => None,
                })
                .ok_or_else(|| format!("`{text}` is no device; write \"auto\", \"cpu\" or \"cuda:0\"")),
        }
    }
}

impl From<DeviceChoice> for String {
    fn from(device: DeviceChoice) -> Self {
        match device {
            DeviceChoice::Auto => "auto".to_owned(),
            DeviceChoice::Cpu => "cpu".to_owned(),
            DeviceChoice::OwnCuda => "cuda".to_owned(),
            DeviceChoice::Cuda(n) => format!("cuda:{n}"),
            DeviceChoice::Sim(n) => format!("sim:{n}"),
        }
    }
}
