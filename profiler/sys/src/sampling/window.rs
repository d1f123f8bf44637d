//! Reading a stack without ever faulting: the kernel copies it, piece by piece, and a bad address is an error.

use std::io;

const PAGE: u64 = 4096;
/// Bytes that are copied at once: more than most stacks, so that a walk is one or two system calls.
const WINDOW: usize = 16 << 10;
/// Copies of one walk. A frame pointer that is none may point anywhere, but not for ever.
const COPIES: u32 = 64;

/// The part of a stack that was copied last.
pub(super) struct Window {
    words: Box<[u64; WINDOW / 8]>,
    start: u64,
    length: u64,
    copies: u32,
    way: Way,
}

/// How the kernel is asked to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// process_vm_readv of this very process.
    Direct,
    /// Through a pipe, where a sandbox forbids that call.
    Pipe { to: libc::c_int, from: libc::c_int },
}

impl Way {
    /// What works here.
    pub(super) fn choose() -> io::Result<Self> {
        let (probe, mut copy) = ([7_u64], [0_u64]);
        if direct(probe.as_ptr() as u64, copy.as_mut_ptr().cast(), 8) == 8 && copy == probe {
            return Ok(Self::Direct);
        }
        Self::pipe()
    }

    pub(super) fn pipe() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for the two descriptors that the call writes.
        match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } {
            0 => Ok(Self::Pipe { to: ends[1], from: ends[0] }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Copies up to `length` bytes from `address` to `into`, as far as they can be read.
    fn copy(self, address: u64, into: *mut u8, length: usize) -> usize {
        match self {
            Self::Direct => direct(address, into, length),
            Self::Pipe { to, from } => through(to, from, address, into, length),
        }
    }
}

impl Window {
    pub(super) fn new(way: Way) -> Self {
        Self { words: Box::new([0; WINDOW / 8]), start: 0, length: 0, copies: 0, way }
    }

    /// Forgets what was copied: the stack has changed.
    pub(super) fn clear(&mut self) {
        (self.length, self.copies) = (0, 0);
    }

    /// The word at `address`. Fails where there is no memory, in the middle of a word, and after too many copies.
    pub(super) fn read(&mut self, address: u64) -> Result<u64, ()> {
        if !address.is_multiple_of(8) {
            return Err(());
        }
        let offset = address.wrapping_sub(self.start);
        if offset < self.length {
            return self.words.get(offset as usize / 8).copied().ok_or(());
        }
        if self.copies == COPIES {
            return Err(());
        }
        self.copies += 1;
        let read = self.way.copy(address, self.words.as_mut_ptr().cast(), WINDOW);
        (self.start, self.length) = (address, read as u64 & !7);
        if self.length == 0 { Err(()) } else { Ok(self.words[0]) }
    }
}

/// Bytes from `address` to the end of its page, at most `length`: what is copied whole or not at all.
fn piece(address: u64, length: usize) -> usize {
    length.min((PAGE - address % PAGE) as usize)
}

fn direct(address: u64, into: *mut u8, length: usize) -> usize {
    const PIECES: usize = WINDOW / PAGE as usize + 1;
    let mut from = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES];
    let (mut count, mut asked) = (0, 0);
    while asked < length && count < PIECES {
        let Some(at) = address.checked_add(asked as u64) else { break };
        from[count] = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: piece(at, length - asked) };
        asked += from[count].iov_len;
        count += 1;
    }
    let to = libc::iovec { iov_base: into.cast(), iov_len: asked };
    // SAFETY: `to` is memory of this caller for `asked` bytes. The kernel checks the addresses in `from` and returns how
    // far it came; the call may be made in a signal handler.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, from.as_ptr(), count as u64, 0) };
    usize::try_from(read).unwrap_or(0)
}

fn through(to: libc::c_int, from: libc::c_int, address: u64, into: *mut u8, length: usize) -> usize {
    let mut done = 0;
    while done < length {
        let Some(at) = address.checked_add(done as u64) else { break };
        // SAFETY: the kernel checks the address; a page fits into an empty pipe, so that this does not wait.
        let written = unsafe { libc::write(to, at as *const libc::c_void, piece(at, length - done)) };
        let Ok(written) = usize::try_from(written) else { break };
        // SAFETY: `into` has room for `length` bytes, of which `done + written` are at most used.
        let read = unsafe { libc::read(from, into.add(done).cast(), written) };
        if usize::try_from(read) != Ok(written) {
            break;
        }
        done += written;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::{COPIES, PAGE, WINDOW, Way, Window};

    /// Two pages, the second of which must not be read.
    fn half_readable() -> *mut u8 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping, wherever the kernel likes.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE as usize, both, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        // SAFETY: the second page of that mapping, which nobody uses.
        let protected = unsafe { libc::mprotect(memory.byte_add(PAGE as usize), PAGE as usize, libc::PROT_NONE) };
        assert_eq!(protected, 0);
        memory.cast()
    }

    #[test]
    fn what_cannot_be_read_is_an_error_whichever_way() {
        let memory = half_readable();
        for way in [Way::choose().unwrap(), Way::pipe().unwrap()] {
            let mut window = Window::new(way);
            let last = memory as u64 + PAGE - 8;
            // SAFETY: the last word of the first page.
            unsafe { *(last as *mut u64) = 42 };
            assert_eq!(window.read(last), Ok(42), "{way:?}");
            assert_eq!(window.read(last + 8), Err(()), "{way:?}: the page may not be read");
            assert_eq!(window.read(last - 3), Err(()), "not a word");
            assert_eq!(window.read(0), Err(()));
            assert_eq!(window.read(u64::MAX - 7), Err(()));
            assert_eq!(window.read(last), Ok(42), "it goes on after an error");
        }
    }

    #[test]
    fn a_long_stack_is_read_piece_by_piece() {
        let words: Vec<u64> = (0..3 * WINDOW as u64 / 8).collect();
        for way in [Way::Direct, Way::pipe().unwrap()] {
            let mut window = Window::new(way);
            for (word, place) in words.iter().zip(0_u64..) {
                assert_eq!(window.read(words.as_ptr() as u64 + 8 * place), Ok(*word));
            }
            assert!(window.copies <= 4);
        }
    }

    #[test]
    fn a_walk_does_not_copy_for_ever() {
        let words = vec![1_u64; 2 * WINDOW];
        let mut window = Window::new(Way::Direct);
        let mut far = (0..u64::from(COPIES) + 1).map(|i| words.as_ptr() as u64 + (i % 2) * (WINDOW as u64 + 64));
        assert!(far.by_ref().take(COPIES as usize).all(|address| window.read(address).is_ok()));
        assert!(window.read(far.next().unwrap()).is_err());
        window.clear();
        assert!(window.read(words.as_ptr() as u64).is_ok());
    }
}
