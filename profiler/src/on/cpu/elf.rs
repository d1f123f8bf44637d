//! The functions of one program or library, from its symbol tables. Names stay in the file until they are asked for:
//! libtorch's fill 40 MB.

use std::fs::File;
use std::os::unix::fs::FileExt;

const HEADER: usize = 64;
const SYMBOL: usize = 24;
/// Symbols that are read at once.
const CHUNK: usize = 1 << 14;
/// Bytes of a name that are read at most.
const NAME: usize = 16 << 10;
const EXECUTABLE: u32 = 1;
const SYMBOLS: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;

/// One file's functions, by address.
#[derive(Debug)]
pub(crate) struct Elf {
    file: File,
    /// Executable segments: offset in the file, address, bytes in the file.
    segments: Vec<(u64, u64, u64)>,
    functions: Vec<Function>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    /// 0: up to the next one.
    size: u32,
    /// Where in the file its name is.
    name: u64,
}

impl Elf {
    /// Reads the tables; `None`: it is no 64-bit little-endian ELF file, or a torn one.
    pub(crate) fn read(file: File) -> Option<Self> {
        let header = bytes(&file, 0, HEADER)?;
        if header.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let segments = table(&file, &header, (32, 54, 56))?;
        let segments =
            segments.iter().filter(|s| u32_at(s, 0) == Some(1) && u32_at(s, 4).unwrap_or(0) & EXECUTABLE != 0);
        let segments = segments.filter_map(|s| Some((u64_at(s, 8)?, u64_at(s, 16)?, u64_at(s, 32)?))).collect();
        // A stripped file may have no sections at all.
        let sections = table(&file, &header, (40, 58, 60)).unwrap_or_default();
        let mut elf = Self { file, segments, functions: Vec::new() };
        for section in &sections {
            if matches!(u32_at(section, 4), Some(SYMBOLS | DYNAMIC_SYMBOLS)) {
                elf.add(section, &sections);
            }
        }
        elf.sort();
        Some(elf)
    }

    fn add(&mut self, section: &[u8], sections: &[Vec<u8>]) -> Option<()> {
        let (at, size) = (u64_at(section, 24)?, u64_at(section, 32)?);
        let texts = sections.get(u32_at(section, 40)? as usize)?;
        let texts_at = u64_at(texts, 24)?;
        let mut done = 0;
        while done < size {
            let length = (size - done).min((CHUNK * SYMBOL) as u64) as usize;
            let chunk = bytes(&self.file, at + done, length)?;
            self.functions.extend(chunk.chunks_exact(SYMBOL).filter_map(|symbol| function(symbol, texts_at)));
            done += length as u64;
        }
        Some(())
    }

    /// In order of address. Of several names of one address, the one that says where the function ends.
    fn sort(&mut self) {
        self.functions.sort_unstable_by_key(|f| (f.start, std::cmp::Reverse(f.size), f.name));
        self.functions.dedup_by_key(|f| f.start);
        self.functions.shrink_to_fit();
    }

    /// The address, in the file's own terms, of what is mapped from an offset.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        let mut found = self.segments.iter().filter(|(at, _, size)| (*at..at + size).contains(&offset));
        found.next().map(|(at, address, _)| offset - at + address)
    }

    /// The symbol of the function at an address.
    pub(crate) fn symbol(&self, address: u64) -> Option<String> {
        let after = self.functions.partition_point(|f| f.start <= address);
        // A label inside a function may come between, so a few are tried.
        let mut before = self.functions[..after].iter().rev().take(8);
        let function = before.find(|f| f.size > 0 && address - f.start < f.size.into()).or_else(|| {
            let last = self.functions[..after].last()?;
            (last.size == 0).then_some(last)
        })?;
        let name = text(&self.file, function.name)?;
        (!name.is_empty()).then_some(name)
    }
}

/// A function that is defined here.
fn function(symbol: &[u8], texts_at: u64) -> Option<Function> {
    let (kind, section) = (symbol.get(4)? & 15, u16::from_le_bytes(symbol.get(6..8)?.try_into().ok()?));
    let (start, size) = (u64_at(symbol, 8)?, u64_at(symbol, 16)?);
    // Without a type, as in assembler; functions; functions that are chosen when the program starts.
    let defined = matches!(kind, 0 | 2 | 10) && section != 0 && start != 0;
    let name = texts_at + u64::from(u32_at(symbol, 0)?);
    defined.then(|| Function { start, size: u32::try_from(size).unwrap_or(u32::MAX), name })
}

/// A table of the header: where it is told, how big an entry is, how many there are.
fn table(file: &File, header: &[u8], (at, size, count): (usize, usize, usize)) -> Option<Vec<Vec<u8>>> {
    let short = |place: usize| Some(usize::from(u16::from_le_bytes(header.get(place..place + 2)?.try_into().ok()?)));
    let (at, size, count) = (u64_at(header, at)?, short(size)?, short(count)?);
    let table = bytes(file, at, size.checked_mul(count)?)?;
    (size > 0).then(|| table.chunks_exact(size).map(<[u8]>::to_vec).collect())
}

fn bytes(file: &File, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// The text at an offset, up to its NUL.
fn text(file: &File, at: u64) -> Option<String> {
    let mut text = vec![0; 256];
    loop {
        let read = file.read_at(&mut text, at).ok()?;
        if let Some(end) = text.iter().take(read).position(|byte| *byte == 0) {
            return Some(String::from_utf8_lossy(&text[..end]).into_owned());
        }
        if read < text.len() || text.len() >= NAME {
            return None;
        }
        text.resize(text.len() * 8, 0);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::Elf;

    #[test]
    fn this_program_has_functions() {
        let elf = Elf::read(File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(elf.functions.len() > 100);
        let main = elf.functions.iter().find(|f| elf.symbol(f.start).as_deref() == Some("main"));
        let main = main.expect("every program has one");
        assert_eq!(elf.symbol(main.start + u64::from(main.size) - 1).as_deref(), Some("main"));
        assert_eq!(elf.symbol(0), None);
    }

    #[test]
    fn nonsense_is_nothing() {
        for nonsense in
            [&b""[..], b"\x7fELF", b"not an ELF file at all", &[b"\x7fELF\x02\x01".as_slice(), &[255; 90]].concat()]
        {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(nonsense).unwrap();
            assert!(Elf::read(file).is_none(), "{nonsense:?}");
        }
    }
}
