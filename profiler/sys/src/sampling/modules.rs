//! The unwind data of everything that is loaded: the program, its libraries, the kernel's vdso.
//!
//! It is used where it lies in memory. So a library is pinned before its data is: it stays loaded for the rest of the
//! process's life, and a handler cannot meet a hole where a library was.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Range;

use framehop::{ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder as _, UnwinderNative};

use super::realigned::Table;

/// How to find the callers of everything that is loaded.
#[derive(Clone, Default)]
pub(super) struct Unwinder {
    pub framehop: UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>,
    /// For what framehop cannot do; in order of address.
    pub tables: Vec<Table>,
}

/// What is loaded, as far as it is known.
#[derive(Default)]
pub(super) struct Modules {
    known: Vec<Loaded>,
    /// Libraries loaded and unloaded so far, by the loader's own count.
    changes: Option<(u64, u64)>,
    unwinder: Unwinder,
}

/// One of them, in addresses of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Loaded {
    name: CString,
    bias: u64,
    code: Range<u64>,
    /// Of the `.eh_frame_hdr`, and of the mapped segment that it lies in.
    index: Range<u64>,
    segment: Range<u64>,
}

impl Modules {
    /// Looks for libraries that were loaded since the last look. The new unwinder, if there are any.
    pub(super) fn refresh(&mut self) -> Option<Unwinder> {
        if self.changes.is_some() && self.changes == changes() {
            return None;
        }
        let (changes, found) = look();
        self.changes = Some(changes);
        let new: Vec<Loaded> = found.into_iter().filter(|loaded| !self.known.contains(loaded)).collect();
        let pinned: Vec<Loaded> = new.into_iter().filter(|loaded| pin(&loaded.name)).collect();
        // What was unloaded before it was pinned is not found again.
        let (_, still) = look();
        let mut added = false;
        for loaded in pinned.into_iter().filter(|loaded| still.contains(loaded)) {
            added |= loaded.eh_frame().map(|eh_frame| self.unwinder.add(&loaded, &eh_frame)).is_some();
            self.known.push(loaded);
        }
        added.then(|| self.unwinder.clone())
    }
}

impl Unwinder {
    fn add(&mut self, loaded: &Loaded, eh_frame: &Range<u64>) {
        let own = |range: &Range<u64>| range.start.wrapping_sub(loaded.bias)..range.end.wrapping_sub(loaded.bias);
        let (index, code) = (&loaded.index, &loaded.code);
        let sections = ExplicitModuleSectionInfo {
            eh_frame_svma: Some(own(eh_frame)),
            eh_frame: Some(bytes(eh_frame)),
            eh_frame_hdr_svma: Some(own(index)),
            eh_frame_hdr: Some(bytes(index)),
            text_svma: Some(own(code)),
            ..ExplicitModuleSectionInfo::default()
        };
        let name = loaded.name.to_string_lossy().into_owned();
        self.framehop.add_module(Module::new(name, code.clone(), loaded.bias, sections));
        let table = Table::new(code.clone(), (index.start, bytes(index)), (eh_frame.start, bytes(eh_frame)));
        let place = self.tables.partition_point(|other| other.code.start < code.start);
        self.tables.insert(place, table);
    }
}

impl Loaded {
    /// `.eh_frame`, to which the index points: four bytes of version and encodings, then a distance from itself.
    fn eh_frame(&self) -> Option<Range<u64>> {
        const VERSION: u8 = 1;
        const DISTANCE_OF_4_BYTES: u8 = 0x1b;
        let index = bytes(&self.index);
        let (head, distance) = (index.first_chunk::<4>()?, index.get(4..8)?);
        if head[0] != VERSION || head[1] != DISTANCE_OF_4_BYTES {
            return None;
        }
        let distance = i32::from_le_bytes(distance.try_into().ok()?);
        let start = self.index.start.checked_add(4)?.checked_add_signed(distance.into())?;
        self.segment.contains(&start).then_some(start..self.segment.end)
    }
}

/// Memory of a pinned library.
fn bytes(range: &Range<u64>) -> &'static [u8] {
    let length = range.end.saturating_sub(range.start) as usize;
    // SAFETY: the range lies in a readable segment of a library (`look` saw to it) that stays loaded for ever (`pin`),
    // in parts that nobody writes after loading.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, length) }
}

/// Keeps a library loaded. The program itself (no name) and the vdso (no path) always are.
fn pin(name: &CStr) -> bool {
    if !name.to_bytes().contains(&b'/') {
        return true;
    }
    // SAFETY: the name ends with NUL; nothing is loaded or run, only found. The handle is dropped on purpose.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    !handle.is_null()
}

/// Libraries loaded and unloaded so far.
fn changes() -> Option<(u64, u64)> {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _size: usize, changes: *mut c_void) -> c_int {
        // SAFETY: the loader gives a valid description, and `changes` gave the address of its own variable.
        let (info, changes) = unsafe { (&*info, &mut *changes.cast::<Option<(u64, u64)>>()) };
        *changes = Some((info.dlpi_adds, info.dlpi_subs));
        // The first one is enough.
        1
    }
    let mut changes = None;
    // SAFETY: `first` gets the address of `changes` back, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut changes).cast()) };
    changes
}

type Found = ((u64, u64), Vec<Loaded>);

fn look() -> Found {
    let mut found: Found = Default::default();
    // SAFETY: `one` gets the address of `found` back, which outlives the call and which nothing else uses meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn one(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid description, and `look` the address of a `Found` that is ours alone.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Found>()) };
    found.0 = (info.dlpi_adds, info.dlpi_subs);
    if info.dlpi_phdr.is_null() || info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: the description's own table and text, valid during the call.
    let (headers, name) = unsafe {
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        (headers, CStr::from_ptr(info.dlpi_name).to_owned())
    };
    found.1.extend(loaded(name, info.dlpi_addr, headers));
    0
}

fn loaded(name: CString, bias: u64, headers: &[libc::Elf64_Phdr]) -> Option<Loaded> {
    let range = |h: &libc::Elf64_Phdr| bias.wrapping_add(h.p_vaddr)..bias.wrapping_add(h.p_vaddr + h.p_memsz);
    let segments = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
    let code = segments().filter(|h| h.p_flags & libc::PF_X != 0).map(range);
    let code = code.reduce(|all, next| all.start.min(next.start)..all.end.max(next.end))?;
    let index = headers.iter().find(|h| h.p_type == libc::PT_GNU_EH_FRAME).map(range)?;
    let readable = segments().filter(|h| h.p_flags & libc::PF_R != 0).map(range);
    let segment = readable.into_iter().find(|s| s.start <= index.start && index.end <= s.end)?;
    Some(Loaded { name, bias, code, index, segment })
}

#[cfg(test)]
mod tests {
    use super::{Modules, look};

    #[test]
    fn the_program_and_libc_are_found_once() {
        let mut modules = Modules::default();
        assert!(modules.refresh().is_some());
        assert!(modules.refresh().is_none(), "nothing was loaded since");
        let has = |part: &str| modules.known.iter().any(|l| l.name.to_string_lossy().contains(part));
        assert!(has("libc.so"), "{:?}", modules.known);
        assert!(modules.known.iter().any(|l| l.name.is_empty()), "the program itself");
        let known = modules.known.len();
        crate::dlopen_global(std::path::Path::new("libm.so.6")).unwrap();
        modules.refresh();
        assert!(modules.known.len() <= known + 1);
    }

    #[test]
    fn unwind_data_lies_inside_its_segment() {
        for loaded in look().1 {
            let eh_frame = loaded.eh_frame().unwrap_or_else(|| panic!("{loaded:?}"));
            assert!(!eh_frame.is_empty());
        }
    }
}
