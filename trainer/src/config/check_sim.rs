//! What a simulation needs.

use super::{Config, DeviceChoice};

/// Stages that can be told how long they last.
const STAGES: [&str; 17] = [
    "load.read",
    "load.pack",
    "target.upload",
    "target.forward",
    "target.pack",
    "target.copy",
    "drafter.upload",
    "drafter.anchors",
    "drafter.mask",
    "drafter.forward",
    "drafter.loss",
    "drafter.backward",
    "drafter.reduce",
    "drafter.clip",
    "drafter.step",
    "drafter.eval",
    "sync.metrics",
];

/// A lane and an iteration, and whether it panics there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planted {
    pub(crate) lane: String,
    pub(crate) panics: bool,
    pub(crate) iteration: u64,
}

/// The failure that a configuration plants; `Some(None)`: none.
pub(crate) fn planted(text: &str) -> Option<Option<Planted>> {
    if text.is_empty() {
        return Some(None);
    }
    let [lane, how, "at", iteration] = text.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    let role = lane.split(':').next()?;
    let panics = match how {
        "panics" => true,
        "fails" => false,
        _ => return None,
    };
    let known = ["loader", "target", "post", "drafter"].contains(&role);
    known.then_some(Some(Planted { lane: lane.to_owned(), panics, iteration: iteration.parse().ok()? }))
}

pub(super) fn problems(c: &Config) -> Vec<(&'static str, &'static str, Option<String>)> {
    let devices = [c.pipeline.targets(), c.pipeline.drafters()].concat();
    let simulated = |device: &DeviceChoice| matches!(device, DeviceChoice::Sim(_));
    let mixed = devices.iter().any(simulated) && !devices.iter().all(simulated);
    let unknown = c.sim.stages.keys().find(|stage| !STAGES.contains(&stage.as_str()));
    let number = |n: usize| (n == 0).then(|| "write 1 or more".to_owned());
    vec![
        (
            "pipeline",
            "target_device",
            mixed
                .then(|| "either all workers are on simulated devices, or none: name `sim` for all of them".to_owned()),
        ),
        ("sim", "stages", unknown.map(|stage| format!("`{stage}` is none of {}", STAGES.join(", ")))),
        ("sim", "samples", number(c.sim.samples)),
        ("sim", "shortest", number(c.sim.shortest)),
        (
            "sim",
            "longest",
            (c.sim.longest < c.sim.shortest).then(|| "it is below `shortest`: write at least that".to_owned()),
        ),
        (
            "sim",
            "fail",
            planted(&c.sim.fail).is_none().then(|| {
                format!("`{}` is no failure; write \"drafter:1 panics at 7\" or \"loader fails at 3\"", c.sim.fail)
            }),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn error(text: &str) -> String {
        Config::parse(text, Path::new("x.toml")).unwrap_err().to_string()
    }

    const SIM: &str = "[pipeline]\ntarget_device = \"sim\"\ndrafter_device = \"sim:1\"\n";

    #[test]
    fn a_simulation_needs_no_model() {
        assert!(Config::parse(SIM, Path::new("x.toml")).unwrap().pipeline.is_simulated());
    }

    #[test]
    fn what_cannot_be_simulated_is_named() {
        assert!(error("[pipeline]\ntarget_device = \"sim\"\n").contains("either all workers"));
        assert!(error(&format!("{SIM}[sim.stages]\n\"target.fwd\" = \"1 ms\"\n")).contains("`target.fwd` is none of"));
        assert!(error(&format!("{SIM}[sim.stages]\n\"target.forward\" = \"fast\"\n")).contains("`fast` is no time"));
        assert!(error(&format!("{SIM}[sim]\nfail = \"it breaks\"\n")).contains("is no failure"));
    }

    #[test]
    fn a_failure_is_read() {
        let planted = |text: &str| planted(text).flatten();
        let own = Planted { lane: "drafter:1".into(), panics: true, iteration: 7 };
        assert_eq!(planted("drafter:1 panics at 7"), Some(own));
        assert_eq!(planted("nobody panics at 7"), None);
    }
}
