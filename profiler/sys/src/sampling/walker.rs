//! Walking one stack: framehop with the unwind data of the loaded libraries, since libtorch keeps no frame pointers.

use framehop::{CacheNative, FrameAddress, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder as _};

use super::modules::Unwinder;
use super::realigned::{self, Context};
use super::record::{End, Sample};
use super::registers::Registers;
use super::window::{Way, Window};

/// What one walk needs, made beforehand; some 70 kB.
pub(super) struct Walker {
    cache: CacheNative<MustNotAllocateDuringUnwind>,
    context: Context,
    window: Window,
}

impl Walker {
    pub(super) fn new(way: Way) -> Self {
        Self { cache: CacheNative::new_in(), context: realigned::context(), window: Window::new(way) }
    }

    /// Fills in the sample's frames.
    pub(super) fn walk(&mut self, unwinder: &Unwinder, mut registers: Registers, sample: &mut Sample) {
        self.window.clear();
        let mut frame = FrameAddress::from_instruction_pointer(registers.pc);
        sample.count = 0;
        sample.end = loop {
            if !sample.push(frame.address()) {
                break End::Cut;
            }
            let caller = self.caller(unwinder, frame, &mut registers.unwind);
            match caller.map(|address| address.and_then(FrameAddress::from_return_address)) {
                // What is no code is a guess of framehop's, made where a function has no unwind data (MKL's kernels).
                Ok(Some(caller)) if !realigned::is_code(&unwinder.tables, caller.address_for_lookup()) => {
                    break End::Lost;
                }
                Ok(Some(caller)) => frame = caller,
                Ok(None) => break End::Root,
                Err(_) => break End::Lost,
            }
        };
    }

    /// One step: the return address, and the registers of the caller.
    fn caller(
        &mut self,
        unwinder: &Unwinder,
        frame: FrameAddress,
        registers: &mut UnwindRegsNative,
    ) -> Result<Option<u64>, framehop::Error> {
        let Self { cache, context, window } = self;
        let before = frame_pointer(registers);
        let step = unwinder.framehop.unwind_frame(frame, registers, cache, &mut |address| window.read(address));
        if let (Ok(Some(_)), Some(frame_pointer)) = (&step, before)
            && registers.sp() == frame_pointer.wrapping_add(16)
        {
            let place = (frame.address_for_lookup(), frame_pointer);
            let right = realigned::stack_pointer(&unwinder.tables, context, place, |address| window.read(address));
            // Never backwards.
            if let Some(right) = right.filter(|right| *right > frame_pointer) {
                registers.set_sp(right);
            }
        }
        step
    }
}

/// Where stacks are realigned with a frame pointer and words beside it.
#[cfg(target_arch = "x86_64")]
fn frame_pointer(registers: &UnwindRegsNative) -> Option<u64> {
    Some(registers.bp())
}

/// There they are not.
#[cfg(target_arch = "aarch64")]
fn frame_pointer(_registers: &UnwindRegsNative) -> Option<u64> {
    None
}
