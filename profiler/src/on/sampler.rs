//! CPU time and memory of this process, thread by thread, from /proc.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// One reading: counter's name, unit, value.
pub(crate) type Reading = (String, &'static str, f64);

/// Remembers the last reading, since a percentage needs two.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    at_ns: Option<i64>,
    process_ns: u64,
    threads: HashMap<u32, u64>,
}

impl Sampler {
    /// Reads everything. What the system does not tell is left out.
    pub(crate) fn sample(&mut self) -> Vec<Reading> {
        let now_ns = dflash_sys::monotonic_ns();
        let process_ns = dflash_sys::process_cpu_ns();
        let threads = threads();
        let mut readings = Vec::new();
        if let Some(elapsed_ns) = self.at_ns.map(|at| now_ns - at).filter(|ns| *ns > 0) {
            let percent = |ns: u64| ns as f64 * 100.0 / elapsed_ns as f64;
            readings.push(("process.cpu".to_owned(), "%", percent(process_ns.saturating_sub(self.process_ns))));
            let mut by_name: HashMap<&str, u64> = HashMap::new();
            for (tid, name, ns) in &threads {
                // A thread that is new since the last reading has done all its work since then.
                let before = self.threads.get(tid).copied().unwrap_or(0);
                *by_name.entry(name).or_default() += ns.saturating_sub(before);
            }
            let mut by_name: Vec<_> = by_name.into_iter().collect();
            by_name.sort_unstable();
            readings.extend(by_name.iter().map(|(name, ns)| (format!("thread.{name}.cpu"), "%", percent(*ns))));
        }
        readings.extend(resident_bytes().map(|bytes| ("process.rss".to_owned(), "bytes", bytes as f64)));
        self.at_ns = Some(now_ns);
        self.process_ns = process_ns;
        self.threads = threads.into_iter().map(|(tid, _, ns)| (tid, ns)).collect();
        readings
    }
}

/// Id, name and CPU time of every thread.
fn threads() -> Vec<(u32, String, u64)> {
    let Ok(entries) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let thread = |entry: fs::DirEntry| {
        let path = entry.path();
        let tid = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(path.join("comm")).ok()?;
        Some((tid, name.trim_end_matches('\n').to_owned(), cpu_ns(&path)?))
    };
    // A thread may end while it is looked at: then it is left out.
    entries.filter_map(|entry| thread(entry.ok()?)).collect()
}

/// CPU time of a thread: exact from schedstat, where the kernel has it, else from stat, in 10 ms.
fn cpu_ns(task: &Path) -> Option<u64> {
    let exact = fs::read_to_string(task.join("schedstat")).ok();
    exact.and_then(|text| text.split_ascii_whitespace().next()?.parse().ok()).or_else(|| {
        let stat = fs::read_to_string(task.join("stat")).ok()?;
        stat_cpu_ns(&stat)
    })
}

/// utime + stime of proc_pid_stat(5); the tick there is 10 ms on every Linux that Rust runs on.
fn stat_cpu_ns(stat: &str) -> Option<u64> {
    // The name stands in parentheses and may hold spaces and parentheses itself.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) * 10_000_000)
}

fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * dflash_sys::page_size())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Sampler, stat_cpu_ns};

    #[test]
    fn a_busy_thread_is_seen_by_name() {
        let mut sampler = Sampler::default();
        sampler.sample();
        let spin = || {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(150) {}
        };
        let busy = std::thread::Builder::new().name("busy (one) x".into()).spawn(move || {
            spin();
            std::thread::park();
        });
        let busy = busy.unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let readings = sampler.sample();
        busy.thread().unpark();
        let find = |name: &str| readings.iter().find(|(n, _, _)| n == name).map(|(_, _, value)| *value).unwrap();
        let cpu = find("thread.busy (one) x.cpu");
        assert!((15.0..101.0).contains(&cpu), "{cpu} %");
        assert!(find("process.cpu") >= cpu * 0.9);
        assert!(find("process.rss") > 1e5);
    }

    #[test]
    fn a_name_with_parentheses() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194304 80 0 0 0 12 30 0 0 20 0 1 0 200 8192";
        assert_eq!(stat_cpu_ns(stat), Some(420_000_000));
        assert_eq!(stat_cpu_ns("nonsense"), None);
    }
}
