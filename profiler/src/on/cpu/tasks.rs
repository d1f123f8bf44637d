//! What /proc says of this process's threads. One that ends meanwhile says nothing.

use std::fs;

/// Numbers of all threads.
pub(crate) fn tids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// A thread's name; at most 15 bytes.
pub(crate) fn name(tid: u32) -> Option<String> {
    // A name is any bytes; what is no UTF-8 is shown as such.
    let name = fs::read(format!("/proc/self/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned())
}

/// The program's name: what threads have that nobody named.
pub(crate) fn program() -> String {
    name(std::process::id()).unwrap_or_default()
}

/// Whether a thread blocks a signal, or waits for it.
pub(crate) fn blocks(tid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap_or_default();
    is_blocked(&status, signal)
}

fn is_blocked(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).map(str::trim);
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

/// What a thread does, in a word.
pub(crate) fn state(tid: u32) -> String {
    let stat = fs::read(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    // The name stands in parentheses and may hold anything, parentheses too.
    let letter = stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2));
    let word = match letter {
        Some(b'R') => "running",
        Some(b'S' | b'I') => "sleeping",
        Some(b'D') => "waiting for a device",
        Some(b'T' | b't') => "stopped",
        Some(b'Z' | b'X') | None => "ended",
        Some(other) => return char::from(*other).to_string(),
    };
    word.to_owned()
}

/// Where in the kernel a thread is, as far as the system tells.
pub(crate) fn kernel_place(tid: u32) -> String {
    let read = |what| fs::read_to_string(format!("/proc/self/task/{tid}/{what}")).unwrap_or_default();
    let (waits_in, call) = (read("wchan"), read("syscall"));
    let waits_in = Some(waits_in.trim()).filter(|place| !place.is_empty() && *place != "0");
    let call = call.split_whitespace().next().filter(|call| *call != "running");
    match (waits_in, call) {
        (Some(place), Some(call)) => format!("in {place} of system call {call}"),
        (Some(place), None) => format!("in {place}"),
        (None, Some(call)) => format!("in system call {call}"),
        (None, None) => "where is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::{blocks, is_blocked, kernel_place, name, program, state, tids};

    #[test]
    fn masks_of_the_kernel() {
        let status = "Name:\tx\nSigPnd:\t0000000000000000\nSigBlk:\t8000000000000001\nSigIgn:\tffffffffffffffff\n";
        assert_eq!([1, 2, 63, 64].map(|signal| is_blocked(status, signal)), [true, false, false, true]);
        assert!(!is_blocked("", 1) && !is_blocked(status, 0) && !is_blocked(status, 65));
    }

    #[test]
    fn a_waiting_thread() {
        let (send, receive) = channel();
        let (end, ends) = channel::<()>();
        let body = move || {
            send.send(dflash_sys::thread_id()).unwrap();
            ends.recv().unwrap_err();
        };
        let thread = std::thread::Builder::new().name("waits; (x) )".into()).spawn(body).unwrap();
        let tid = receive.recv().unwrap();
        assert!(tids().contains(&tid));
        assert_eq!(name(tid).unwrap(), "waits; (x) )");
        let begin = std::time::Instant::now();
        while state(tid) != "sleeping" {
            assert!(begin.elapsed().as_secs() < 30, "{}", state(tid));
        }
        assert!(kernel_place(tid).starts_with("in ") || kernel_place(tid).contains("not known"));
        assert!(!blocks(tid, 40));
        drop(end);
        thread.join().unwrap();
        assert_eq!((name(tid), state(tid).as_str()), (None, "ended"));
        assert!(!program().is_empty());
    }
}
