//! What the handler notes down. Plain numbers; all zeroes are valid, so that a ring of it is fresh memory.

/// Return addresses of a stack that are kept, innermost first; what lies further out is cut.
pub const FRAMES: usize = 128;
/// Open spans that are kept, outermost first.
pub const SPANS: usize = 24;

/// Why a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// It came to the thread's first function.
    #[default]
    Root = 0,
    /// There are more than [`FRAMES`].
    Cut = 1,
    /// How to go on is not known.
    Lost = 2,
}

/// What a thread was working on, as the [`Labeller`](super::Labeller) fills it in. The numbers are the labeller's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Label {
    /// Whose work it was; 0: not known.
    pub lane: u32,
    /// Spans in `spans`.
    pub depth: u32,
    /// Number of the iteration, plus 1; 0: none.
    pub iteration: u64,
    /// What was open, outermost first.
    pub spans: [u32; SPANS],
    /// When each of them began.
    pub begins: [u64; SPANS],
}

impl Label {
    /// Nothing is known.
    pub const NONE: Self = Self { lane: 0, depth: 0, iteration: 0, spans: [0; SPANS], begins: [0; SPANS] };

    /// The open spans and their begins, outermost first.
    pub fn open(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.spans.iter().copied().zip(self.begins.iter().copied()).take(self.depth as usize)
    }
}

/// A thread's stack at one moment.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sample {
    /// When, nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: i64,
    /// The thread's number in its system.
    pub tid: u32,
    /// Which request this answers; 0: a timer's sample.
    pub request: u32,
    /// CPU time that the thread had used so far, nanoseconds.
    pub cpu_ns: u64,
    /// CPU time that the handler took, nanoseconds.
    pub cost_ns: u32,
    /// Why the walk ended.
    pub end: End,
    /// What the thread worked on.
    pub label: Label,
    pub(super) count: u32,
    pub(super) addresses: [u64; FRAMES],
}

impl Sample {
    /// The instruction that was interrupted, then return addresses, innermost first.
    #[must_use]
    pub fn frames(&self) -> &[u64] {
        self.addresses.get(..self.count as usize).unwrap_or(&self.addresses)
    }

    /// Adds a frame; `false`: there is no more room.
    pub(super) fn push(&mut self, address: u64) -> bool {
        let Some(place) = self.addresses.get_mut(self.count as usize) else { return false };
        *place = address;
        self.count += 1;
        true
    }
}
