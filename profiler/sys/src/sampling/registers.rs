//! The registers of an interrupted thread that a walk begins with.

use framehop::UnwindRegsNative;

/// Where the thread was, and the registers that lead to its callers.
pub(super) struct Registers {
    pub pc: u64,
    pub unwind: UnwindRegsNative,
}

impl Registers {
    /// Out of what the kernel saved when it called the handler.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of(context: &libc::ucontext_t) -> Self {
        let register = |number: libc::c_int| context.uc_mcontext.gregs[number as usize].cast_unsigned();
        let (pc, sp, bp) = (register(libc::REG_RIP), register(libc::REG_RSP), register(libc::REG_RBP));
        Self { pc, unwind: UnwindRegsNative::new(pc, sp, bp) }
    }

    /// Out of what the kernel saved when it called the handler.
    #[cfg(target_arch = "aarch64")]
    pub(super) fn of(context: &libc::ucontext_t) -> Self {
        let saved = &context.uc_mcontext;
        let (frame, link) = (saved.regs[29], saved.regs[30]);
        Self { pc: saved.pc, unwind: UnwindRegsNative::new(link, saved.sp, frame) }
    }
}
