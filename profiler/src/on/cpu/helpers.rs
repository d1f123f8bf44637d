//! Whose work does a thread that is in no lane do?
//!
//! - A thread `pt_autograd_<d>` runs backward passes on device `d`: libtorch's. It works for the lane of that device
//!   (`cuda:d`) that has a span `*.backward` open.
//! - A thread of the same name as a lane's thread was started by it, and named by nobody: OpenMP's workers are such. It
//!   works for that lane. The program's own name says nothing, since it is what everybody else's threads have.
//!
//! If two lanes fit, or none, nothing is said.

use std::sync::atomic::{AtomicU64, Ordering};

/// Ids of call sites that are looked at; further ones are taken for no backward.
const SITES: usize = 1 << 12;
static BACKWARD: [AtomicU64; SITES / 64] = [const { AtomicU64::new(0) }; SITES / 64];

/// What a thread's name says, in one word for the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    Nothing,
    Backward { device: u32 },
    Name(u32),
}

impl Hint {
    /// Of a thread, by its name and the program's.
    pub(crate) fn of(thread: &str, program: &str) -> Self {
        let autograd = thread.strip_prefix("pt_autograd_").and_then(|device| device.parse::<u32>().ok());
        match autograd {
            Some(device) => Self::Backward { device: device.saturating_add(1) },
            None if thread.is_empty() || thread == program => Self::Nothing,
            None => Self::Name(name_number(thread.as_bytes())),
        }
    }

    pub(crate) fn pack(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Backward { device } => 1 << 32 | u64::from(device),
            Self::Name(name) => 2 << 32 | u64::from(name),
        }
    }

    pub(crate) fn unpack(packed: u64) -> Self {
        match packed >> 32 {
            1 => Self::Backward { device: packed as u32 },
            2 => Self::Name(packed as u32),
            _ => Self::Nothing,
        }
    }
}

/// `cuda:1` is 2, `cuda` is 1; the CPU and what has no number are 0, which no hint means.
pub(crate) fn device_number(device: &str) -> u32 {
    match device.split_once(':') {
        Some(("cpu", _)) => 0,
        Some((_, index)) => index.parse::<u32>().map_or(0, |index| index.saturating_add(1)),
        None => u32::from(device != "cpu"),
    }
}

/// A thread's name as a number, never 0 (FNV-1a). A NUL ends it.
pub(crate) fn name_number(name: &[u8]) -> u32 {
    let bytes = name.iter().take_while(|byte| **byte != 0);
    bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)).max(1)
}

/// A call site got its number.
pub(crate) fn note_site(id: u32, name: &str) {
    if name.ends_with(".backward")
        && let Some(word) = BACKWARD.get(id as usize / 64)
    {
        word.fetch_or(1 << (id % 64), Ordering::Relaxed);
    }
}

/// Whether it is one of a backward pass.
pub(crate) fn is_backward(site: u32) -> bool {
    BACKWARD.get(site as usize / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (site % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::{Hint, device_number, is_backward, name_number, note_site};

    #[test]
    fn names_say_whom_a_thread_helps() {
        assert_eq!(Hint::of("pt_autograd_3", "dflash"), Hint::Backward { device: device_number("cuda:3") });
        assert_eq!(Hint::of("dflash", "dflash"), Hint::Nothing);
        assert_eq!(Hint::of("", "dflash"), Hint::Nothing);
        assert_eq!(Hint::of("drafter:0", "dflash"), Hint::Name(name_number(b"drafter:0\0\0")));
        for hint in [Hint::Nothing, Hint::Backward { device: 4 }, Hint::Name(u32::MAX)] {
            assert_eq!(Hint::unpack(hint.pack()), hint);
        }
    }

    #[test]
    fn devices_by_number() {
        let numbers = ["cpu", "cpu:0", "cuda", "cuda:0", "cuda:7", "cuda:x", "mps"].map(device_number);
        assert_eq!(numbers, [0, 0, 1, 1, 8, 0, 1]);
    }

    #[test]
    fn backward_sites_are_known_by_number() {
        note_site(4001, "drafter.backward");
        note_site(4002, "drafter.backwards");
        note_site(u32::MAX, "x.backward");
        assert!(is_backward(4001) && !is_backward(4002) && !is_backward(u32::MAX));
    }
}
