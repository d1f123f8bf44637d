//! What the profiler's own threads cost that come and go: those that sample, answer requests, capture kernels.

use std::sync::{Arc, Mutex};

use super::hub::lock;

/// A kind of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `dflash-cpu`.
    Sampler,
    /// `dflash-control` and `dflash-client`.
    Control,
    /// `dflash-kernels`.
    Kernels,
}

impl Role {
    /// The counter of their CPU time so far.
    pub(crate) fn counter(self) -> &'static str {
        match self {
            Self::Sampler => "profiler.sampler.cpu",
            Self::Control => "profiler.control.cpu",
            Self::Kernels => "profiler.kernels.cpu",
        }
    }
}

/// Those that run, and what those took that have ended. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnThreads(Arc<Mutex<Vec<Account>>>);

#[derive(Debug)]
struct Account {
    role: Role,
    /// CPU time of those that have ended, nanoseconds.
    ended_ns: u64,
    /// Numbers of those that run, in the system.
    running: Vec<u32>,
}

/// The calling thread is one of them as long as this lives.
#[derive(Debug)]
#[must_use = "the thread is counted until this is dropped"]
pub(crate) struct Present {
    threads: OwnThreads,
    role: Role,
    tid: u32,
}

impl OwnThreads {
    /// The calling thread begins.
    pub(crate) fn enter(&self, role: Role) -> Present {
        let tid = dflash_sys::thread_id();
        let mut accounts = lock(&self.0);
        match accounts.iter_mut().find(|account| account.role == role) {
            Some(account) => account.running.push(tid),
            None => accounts.push(Account { role, ended_ns: 0, running: vec![tid] }),
        }
        drop(accounts);
        Present { threads: self.clone(), role, tid }
    }

    /// CPU time of each kind so far, nanoseconds; of kinds that there has been one of.
    pub(crate) fn cpu_ns(&self) -> Vec<(Role, u64)> {
        let running = |account: &Account| {
            account.running.iter().filter_map(|tid| dflash_sys::cpu_ns_of_thread(*tid)).sum::<u64>()
        };
        lock(&self.0).iter().map(|account| (account.role, account.ended_ns + running(account))).collect()
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        for account in lock(&self.threads.0).iter_mut().filter(|account| account.role == self.role) {
            account.ended_ns += dflash_sys::thread_cpu_ns();
            account.running.retain(|tid| *tid != self.tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OwnThreads, Role};

    fn work() {
        let begin = dflash_sys::thread_cpu_ns();
        while dflash_sys::thread_cpu_ns() < begin + 2_000_000 {}
    }

    #[test]
    fn threads_that_have_ended_still_count() {
        let threads = OwnThreads::default();
        assert!(threads.cpu_ns().is_empty());
        for round in 1..=3 {
            let own = threads.clone();
            let worked = move || {
                let _present = own.enter(Role::Control);
                work();
            };
            std::thread::spawn(worked).join().unwrap();
            let [(Role::Control, cpu_ns)] = threads.cpu_ns()[..] else { panic!("{:?}", threads.cpu_ns()) };
            assert!(cpu_ns >= round * 2_000_000, "{cpu_ns}");
        }
        let _present = threads.enter(Role::Kernels);
        work();
        let before = threads.cpu_ns();
        work();
        let after = threads.cpu_ns();
        assert_eq!(before[0], after[0]);
        assert!(after[1].1 >= before[1].1 + 2_000_000, "one that runs counts");
    }
}
