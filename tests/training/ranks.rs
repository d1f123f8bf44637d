//! Several processes that train as one, started as a shell loop starts them.

mod ends;
mod hosts;
mod learning;
mod refused;

use super::tiny::Place;
use crate::ports::free_port;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Long enough for a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(180);

/// Processes of one training.
struct Crowd<'a> {
    place: &'a Place,
    port: u16,
    children: Vec<Child>,
}

impl<'a> Crowd<'a> {
    /// Two ranks, each with its own arguments behind `train`.
    fn start(place: &'a Place, arguments: [&[&str]; 2]) -> Self {
        let port = free_port();
        let mut crowd = Self { place, port, children: Vec::new() };
        crowd.children = (0..2).map(|rank| crowd.spawn(rank, arguments[rank])).collect();
        crowd
    }

    fn spawn(&self, rank: usize, arguments: &[&str]) -> Child {
        let file = |end: &str| File::create(self.file(rank, end)).unwrap();
        Command::new(env!("CARGO_BIN_EXE_dflash"))
            .arg("train")
            .args(arguments)
            .current_dir(self.place.path("."))
            .env_remove("DFLASH_RUNS")
            .envs([("WORLD_SIZE", "2"), ("RANK", ["0", "1"][rank]), ("LOCAL_RANK", ["0", "1"][rank])])
            .envs([("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &self.port.to_string())])
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap()
    }

    fn file(&self, rank: usize, end: &str) -> PathBuf {
        self.place.path(&format!("rank{rank}.{end}"))
    }

    fn said(&self, rank: usize) -> String {
        fs::read_to_string(self.file(rank, "err")).unwrap()
    }

    /// Waits until a rank says something on stderr.
    fn hears(&mut self, rank: usize, words: &str) {
        let began = Instant::now();
        while !self.said(rank).contains(words) {
            let ended = self.children[rank].try_wait().unwrap();
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "rank {rank} {ended:?}:\n{}", self.said(rank));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, rank: usize, name: &str) {
        let pid = self.children[rank].id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for a rank's end; its exit code.
    fn code(&mut self, rank: usize) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.children[rank].try_wait().unwrap() {
                assert!(!self.said(rank).contains("panicked"), "{}", self.said(rank));
                return status.code();
            }
            assert!(began.elapsed() < PATIENCE, "rank {rank} does not end:\n{}", self.said(rank));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Both come to a good end; the run's directory, which rank 0 alone prints.
    fn ends_well(mut self) -> PathBuf {
        let codes = [0, 1].map(|rank| self.code(rank));
        assert_eq!(codes, [Some(0); 2], "{}\n{}", self.said(0), self.said(1));
        assert_eq!(fs::read_to_string(self.file(1, "out")).unwrap(), "");
        PathBuf::from(fs::read_to_string(self.file(0, "out")).unwrap().trim())
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        // What a failed test leaves.
        self.children.iter_mut().for_each(|child| drop((child.kill(), child.wait())));
    }
}

/// A place with texts, and configurations for one process (two samples a step), and for ranks (one each).
fn place() -> Place {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap();
    // What is learnt in a step does not depend on how many are to come.
    let config = config.replace("steps = 12", "steps = 12\nschedule = \"constant\"\nwarmup = 0.0")
        + "[checkpoint]\nevery = 5\nkeep = 0\n";
    fs::write(place.config(), &config).unwrap();
    let one = config.replace("batch = 2", "batch = 1");
    fs::write(place.path("ranks.toml"), &one).unwrap();
    let two = one.replace("[pipeline]", "[pipeline]\ndrafter_devices = [\"cpu\", \"cpu\"]");
    fs::write(place.path("four.toml"), two.replace("[\"cpu\", \"cpu\"]", "[\"cpu\", \"cpu\", \"cpu\", \"cpu\"]"))
        .unwrap();
    fs::write(place.path("two.toml"), two).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    place
}

fn single(place: &Place, arguments: &[&str]) -> PathBuf {
    place.path(place.ok(&[&["train"], arguments].concat()).trim())
}

/// A column of metrics.csv.
fn column(run: &Path, name: &str) -> Vec<f64> {
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let at = text.lines().next().unwrap().split(',').position(|column| column == name).unwrap();
    text.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

fn checkpoint(run: &Path, step: usize) -> PathBuf {
    run.join(format!("checkpoints/step-{step:06}"))
}

/// The step of the newest checkpoint.
fn newest(run: &Path) -> usize {
    let entries = fs::read_dir(run.join("checkpoints")).unwrap();
    let step = |name: String| name.strip_prefix("step-")?.parse().ok();
    entries.filter_map(|entry| step(entry.unwrap().file_name().into_string().unwrap())).max().unwrap()
}
