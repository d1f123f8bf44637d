//! Simulated devices: who limits is who the configuration says, failures are named, and nothing hangs.

mod ran;

use dflash_trainer::config::{AsyncPostprocess, Config, DeviceChoice, Lasting};
use ran::{Ran, run};
use std::time::{Duration, Instant};

/// How long a busy machine is given to be less so.
const PATIENCE: Duration = Duration::from_secs(60);

fn config(targets: usize, drafters: usize, stages: &[(&str, &str)]) -> Config {
    let mut config = Config::default();
    config.pipeline.target_devices = (0..targets).map(DeviceChoice::Sim).collect();
    config.pipeline.drafter_devices = (targets..targets + drafters).map(DeviceChoice::Sim).collect();
    config.pipeline.async_postprocess = AsyncPostprocess::Off;
    let lasting = |text: &str| Lasting::try_from(text.to_owned()).unwrap();
    config.sim.stages = stages.iter().map(|(stage, text)| ((*stage).to_owned(), lasting(text))).collect();
    (config.sim.samples, config.sim.shortest, config.sim.longest) = (16, 100, 100);
    (config.train.batch, config.train.steps, config.profile.log_every) = (1, 30, 20);
    config.profile.warmup_iterations = 5;
    config
}

/// Shares of a target's put and of a drafter's wait, by what takes how long.
#[derive(Clone, Copy, Debug)]
struct Case {
    targets: usize,
    drafters: usize,
    target_ms: u32,
    drafter_ms: u32,
}

impl Case {
    /// In the steady state the faster side waits for what the slower one takes longer. Times are of a batch on each side.
    fn expected(self) -> (f64, f64) {
        let target = f64::from(self.target_ms) / self.targets as f64;
        let drafter = f64::from(self.drafter_ms) / self.drafters as f64;
        let cycle = target.max(drafter);
        (1.0 - target / cycle, 1.0 - drafter / cycle)
    }

    fn run(self) -> Ran {
        let (target, drafter) = (format!("{} ms", self.target_ms), format!("{} ms", self.drafter_ms));
        let mut config = config(
            self.targets,
            self.drafters,
            &[("target.forward", target.as_str()), ("drafter.backward", drafter.as_str())],
        );
        // Until the queues are full, or empty, it is not steady.
        (config.pipeline.batch_queue, config.pipeline.hs_queue) = (2, 2);
        (config.train.steps, config.profile.log_every, config.profile.warmup_iterations) = (48, 24, 12);
        self::run(config)
    }

    /// What does not agree with the calculation.
    fn disagreements(self) -> Vec<String> {
        let ran = self.run();
        let (put, wait) = self.expected();
        let mut found = Vec::new();
        // A loaded machine wakes a sleeping thread late: that adds to both sides, and moves the shares a little.
        let mut near = |what: &str, got: f64, want: f64| {
            if (got - want).abs() > 0.12 {
                found.push(format!("{self:?}: {what} is {got:.3}, not {want:.3}"));
            }
        };
        near("target.put", ran.means.share("target:0", "target.put"), put);
        // The last drafter of a step: those before it wait for it, too, when they reduce.
        let last = format!("drafter:{}", self.drafters - 1);
        near("drafter.wait", ran.means.share(&last, "drafter.wait"), wait);
        // Of one pair it is known what both sides find: room for one where the target waits, else none but the batch itself.
        // Several targets that began together come together.
        let depth = ran.settled("queue.hidden_states.depth") / 2.0;
        let pair = self.targets == 1 && self.drafters == 1;
        if pair && (put > 0.1 && depth < 0.6 || wait > 0.1 && depth > 0.4) {
            found.push(format!("{self:?}: the queue is {depth:.2} full"));
        }
        let said = ran.means.waiting.lock().unwrap().clone();
        let limited = if put > wait { "target waits" } else { "drafter waits" };
        if !said.starts_with(limited) {
            found.push(format!("{self:?}: {said}"));
        }
        found
    }
}

/// Times on a busy machine, which wakes sleeping threads late, prove nothing: then again. What is wrong is so each time.
fn comes_true(disagreements: impl Fn() -> Vec<String>) {
    let begin = Instant::now();
    loop {
        let found = disagreements();
        if found.is_empty() {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{found:?}");
    }
}

#[test]
fn the_waiting_is_what_a_calculation_gives() {
    for (targets, drafters, target_ms, drafter_ms) in
        [(1, 1, 10, 20), (1, 1, 20, 10), (3, 1, 30, 15), (3, 1, 30, 6), (1, 2, 10, 30), (1, 2, 20, 16)]
    {
        let case = Case { targets, drafters, target_ms, drafter_ms };
        comes_true(|| case.disagreements());
    }
}

#[test]
fn a_worker_that_fails_ends_the_run_with_its_name() {
    for lane in ["loader", "target:1", "post:0", "drafter:0", "drafter:2"] {
        for how in ["panics", "fails"] {
            let mut config = config(2, 3, &[("target.forward", "1 ms"), ("drafter.backward", "2 ms")]);
            config.pipeline.async_postprocess = AsyncPostprocess::On;
            config.train.steps = 1_000_000;
            config.sim.fail = format!("{lane} {how} at 6");
            let error = run(config).result.unwrap_err().to_string();
            assert_eq!(error, format!("{lane} failed: planted by `fail` in [sim], iteration 6"));
        }
    }
}

#[test]
fn the_queue_stays_within_its_bytes() {
    let mut config = config(3, 1, &[("target.forward", "1 ms"), ("drafter.backward", "3 ms")]);
    (config.pipeline.hs_queue, config.pipeline.hs_queue_bytes) = (8, "1 MB".to_owned());
    // Batches of 300 to 400 kB: two of the largest fit, and never a third.
    (config.sim.shortest, config.sim.longest, config.sim.token_bytes) = (75, 100, 4_000);
    let ran = run(config);
    let bytes = ran.readings("queue.hidden_states.bytes");
    let most = bytes.iter().copied().fold(0.0, f64::max);
    assert!(most <= 1e6 && most > 5e5, "{most}");
    assert_eq!(ran.readings("queue.hidden_states.bytes.most"), [1e6]);
    assert!(ran.readings("queue.hidden_states.depth").iter().all(|depth| *depth <= 3.0));
}

#[test]
fn device_times_and_sensors_are_simulated_too() {
    let mut config = config(1, 1, &[("target.forward", "5 ms"), ("drafter.backward", "10 ms")]);
    config.pipeline.async_postprocess = AsyncPostprocess::On;
    comes_true(|| late_device_times(run(config.clone())));
}

/// Device times whose quartile is more than a millisecond longer than it should be; checks what holds on any machine.
fn late_device_times(ran: Ran) -> Vec<String> {
    assert_eq!(ran.result.as_ref().unwrap().steps, 30);
    let t = &ran.timeline;
    let on_device = |name: &str| -> Vec<f64> {
        let spans = t.spans.iter().filter(|span| t.name(span.name) == name);
        spans.filter_map(|span| span.device).map(|device| device.duration_ns as f64 / 1e6).collect()
    };
    let (forward, backward) = (on_device("target.forward"), on_device("drafter.backward"));
    assert!(forward.len() >= 25 && backward.len() >= 25, "{} {}", forward.len(), backward.len());
    assert!(ran.readings("gpu.sim:1.utilization").iter().all(|percent| (0.0..=100.0).contains(percent)));
    assert!(ran.readings("gpu.sim:0.power").iter().all(|watts| (120.0..=650.0).contains(watts)));
    assert!(t.marks.iter().any(|mark| mark.text.contains("simulated")));
    // A device's time also has what its host thread is late between the event and the work: on a busy machine often, but
    // hardly in three of four.
    let mut late = Vec::new();
    for (mut times, want) in [(forward, 5.0), (backward, 10.0)] {
        times.sort_by(f64::total_cmp);
        assert!(times[0] > want - 0.1, "{times:?}");
        if (times[times.len() / 4] - want).abs() >= 1.0 {
            late.push(format!("{want} ms: {times:?}"));
        }
    }
    late
}
