//! Functions that realign their stack, as those of libtorch that compute with vectors: their caller's stack pointer
//! lies in memory, beside their frame pointer. framehop reads no memory for that and takes the frame pointer's word,
//! which leads to the right caller with a wrong stack pointer; here it is put right.

use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindSection, UnwindTableRow,
};

/// One library's unwind data, where it lies in memory.
#[derive(Clone)]
pub(super) struct Table {
    /// Addresses of its code.
    pub code: Range<u64>,
    index: &'static [u8],
    eh_frame: EhFrame<EndianSlice<'static, LittleEndian>>,
    bases: BaseAddresses,
}

/// Room for rules that is not allocated.
pub(super) struct InPlace;

impl UnwindContextStorage<usize> for InPlace {
    type Rules = [(Register, RegisterRule<usize>); 192];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

/// What one look needs, made beforehand.
pub(super) type Context = Box<UnwindContext<usize, InPlace>>;

/// A context.
pub(super) fn context() -> Context {
    Box::new(UnwindContext::new_in())
}

impl Table {
    pub(super) fn new(code: Range<u64>, index: (u64, &'static [u8]), eh_frame: (u64, &'static [u8])) -> Self {
        let bases = BaseAddresses::default().set_eh_frame_hdr(index.0).set_eh_frame(eh_frame.0).set_text(code.start);
        let mut frames = EhFrame::new(eh_frame.1, LittleEndian);
        frames.set_address_size(8);
        Self { code, index: index.1, eh_frame: frames, bases }
    }

    /// Where, from the frame pointer, the function at an address keeps its caller's stack pointer, if it does so.
    fn place(&self, address: u64, context: &mut Context) -> Option<i64> {
        let index = EhFrameHdr::new(self.index, LittleEndian).parse(&self.bases, 8).ok()?;
        let table = index.table()?;
        let entry = table.fde_for_address(&self.eh_frame, &self.bases, address, EhFrame::cie_from_offset).ok()?;
        let row = entry.unwind_info_for_address(&self.eh_frame, &self.bases, context, address).ok()?;
        match row.cfa() {
            CfaRule::Expression(expression) => behind_frame_pointer(expression.get(&self.eh_frame).ok()?.0.slice()),
            CfaRule::RegisterAndOffset { .. } => None,
        }
    }
}

/// Whether an address lies in the code of a library that is known.
pub(super) fn is_code(tables: &[Table], address: u64) -> bool {
    find(tables, address).is_some()
}

fn find(tables: &[Table], address: u64) -> Option<&Table> {
    let after = tables.partition_point(|table| table.code.start <= address);
    tables.get(after.checked_sub(1)?).filter(|table| table.code.contains(&address))
}

/// The caller's stack pointer, of the function at an address with this frame pointer, if it realigned its stack.
pub(super) fn stack_pointer(
    tables: &[Table],
    context: &mut Context,
    (address, frame_pointer): (u64, u64),
    mut read: impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    let place = find(tables, address)?.place(address, context)?;
    read(frame_pointer.checked_add_signed(place)?).ok()
}

/// The offset in "what lies in memory so far from rbp": DW_OP_breg6, a signed LEB128 number, DW_OP_deref.
fn behind_frame_pointer(expression: &[u8]) -> Option<i64> {
    let (&[first, ref number @ ..], &last) = (expression.split_last().map(|(_, rest)| rest)?, expression.last()?)
    else {
        return None;
    };
    if first != gimli::constants::DW_OP_breg6.0 || last != gimli::constants::DW_OP_deref.0 || number.len() > 4 {
        return None;
    }
    let mut value = 0_i64;
    for (place, byte) in number.iter().enumerate() {
        let is_last = place + 1 == number.len();
        if (byte & 0x80 == 0) != is_last {
            return None;
        }
        value |= i64::from(byte & 0x7f) << (7 * place);
    }
    // The highest bit of the last byte is the sign.
    let unused = 64_u32.checked_sub(7 * number.len() as u32).filter(|unused| *unused < 64)?;
    Some(value << unused >> unused)
}

#[cfg(test)]
mod tests {
    use super::behind_frame_pointer;

    #[test]
    fn expressions_of_compilers() {
        assert_eq!(behind_frame_pointer(&[0x76, 0x78, 0x06]), Some(-8));
        assert_eq!(behind_frame_pointer(&[0x76, 0x58, 0x06]), Some(-40));
        assert_eq!(behind_frame_pointer(&[0x76, 0x98, 0x7f, 0x06]), Some(-104));
        assert_eq!(behind_frame_pointer(&[0x76, 0x10, 0x06]), Some(16));
        for other in
            [&[][..], &[0x76], &[0x76, 0x06], &[0x77, 8, 6], &[0x76, 8, 0x22], &[0x76, 0x80, 0x06], &[0x76, 1, 1, 6]]
        {
            assert_eq!(behind_frame_pointer(other), None, "{other:?}");
        }
    }
}
