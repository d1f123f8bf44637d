//! Walking one stack: framehop with the unwind data of the loaded libraries, since libtorch keeps no frame pointers.

use framehop::{CacheNative, FrameAddress, MustNotAllocateDuringUnwind, Unwinder as _, UnwinderNative};

use super::record::{End, Sample};
use super::registers::Registers;
use super::window::{Way, Window};

pub(super) type Unwinder = UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>;

/// What one walk needs, made beforehand; some 45 kB.
pub(super) struct Walker {
    cache: CacheNative<MustNotAllocateDuringUnwind>,
    window: Window,
}

impl Walker {
    pub(super) fn new(way: Way) -> Self {
        Self { cache: CacheNative::new_in(), window: Window::new(way) }
    }

    /// Fills in the sample's frames.
    pub(super) fn walk(&mut self, unwinder: &Unwinder, mut registers: Registers, sample: &mut Sample) {
        self.window.clear();
        let window = &mut self.window;
        let mut read = |address| window.read(address);
        let mut frame = FrameAddress::from_instruction_pointer(registers.pc);
        sample.count = 0;
        sample.end = loop {
            if !sample.push(frame.address()) {
                break End::Cut;
            }
            let caller = unwinder.unwind_frame(frame, &mut registers.unwind, &mut self.cache, &mut read);
            match caller.map(|address| address.and_then(FrameAddress::from_return_address)) {
                Ok(Some(address)) => frame = address,
                Ok(None) => break End::Root,
                Err(_) => break End::Lost,
            }
        };
    }
}
