//! What is written to stderr while the view has the terminal: a line of a training's log, a warning of libtorch, would
//! stand in the middle of the picture. Meanwhile it goes to a file without a name, and never waits for a reader as it
//! would in a pipe.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file, and the stderr whose place it has while the view has the terminal.
static HELD: Mutex<Option<(File, Option<OwnedFd>)>> = Mutex::new(None);

/// What was written so far. Dropping it gives stderr back for good.
pub struct Said {
    file: File,
    offset: u64,
    /// A line that is not whole yet.
    part: Vec<u8>,
}

impl Said {
    /// Prepares to take stderr whenever the terminal is taken; `None` where stderr is no terminal, so that it disturbs
    /// nothing, or where there is no room for a file.
    pub fn prepare() -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let file = nameless().ok()?;
        *held() = Some((file.try_clone().ok()?, None));
        Some(Self { file, offset: 0, part: Vec::new() })
    }

    /// The lines that were written since the last call.
    pub fn lines(&mut self) -> Vec<String> {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = self.file.read_at(&mut bytes, self.offset) {
            self.offset += read as u64;
            self.part.extend_from_slice(&bytes[..read]);
        }
        let Some(end) = self.part.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.part.split_off(end + 1);
        let whole = std::mem::replace(&mut self.part, rest);
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }

    /// The same with a last line that lacks its end.
    pub fn rest(&mut self) -> Vec<String> {
        let mut lines = self.lines();
        if !self.part.is_empty() {
            lines.push(String::from_utf8_lossy(&std::mem::take(&mut self.part)).into_owned());
        }
        lines
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        give_back();
        *held() = None;
    }
}

/// Takes stderr, if that was prepared. Where it cannot be taken the picture may be disturbed, no more.
pub fn take() {
    if let Some((file, saved @ None)) = &mut *held()
        && let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned()
        && rustix::stdio::dup2_stderr(&*file).is_ok()
    {
        *saved = Some(stderr);
    }
}

/// Gives stderr back, if it was taken.
pub fn give_back() {
    if let Some((_, saved)) = &mut *held()
        && let Some(stderr) = saved.take()
    {
        // There is nobody left to tell.
        let _ = rustix::stdio::dup2_stderr(stderr);
    }
}

fn held() -> MutexGuard<'static, Option<(File, Option<OwnedFd>)>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that is gone with its last user, and grows at its end whoever writes.
fn nameless() -> io::Result<File> {
    let path =
        std::env::temp_dir().join(format!("dflash-stderr-{}-{}", std::process::id(), super::source::now_unix_ns()));
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_come_whole_and_the_last_one_as_it_is() {
        let file = nameless().expect("a file");
        let mut writer = file.try_clone().expect("the same file");
        let mut said = Said { file, offset: 0, part: Vec::new() };
        writer.write_all(b"one\ntw").expect("room");
        assert_eq!(said.lines(), ["one"]);
        writer.write_all(b"o\n\xff\nthree").expect("room");
        assert_eq!(said.lines(), ["two", "\u{fffd}"]);
        assert_eq!(said.rest(), ["three"]);
        assert!(said.rest().is_empty());
    }
}
