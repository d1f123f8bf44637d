//! Which file the code at an address comes from: /proc/self/maps.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// One executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub range: Range<u64>,
    /// Where in the file it begins.
    pub offset: u64,
    inode: u64,
    /// The file, or what the kernel calls it (`[vdso]`); empty: code that was made at run time.
    pub path: Arc<str>,
}

/// All of them, in order of address.
pub(crate) fn executable() -> Vec<Mapping> {
    parse(&String::from_utf8_lossy(&fs::read("/proc/self/maps").unwrap_or_default()))
}

/// The mapping with an address in it.
pub(crate) fn find(maps: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = maps.partition_point(|map| map.range.start <= address);
    maps[..after].last().filter(|map| map.range.contains(&address))
}

fn parse(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(line).collect()
}

/// `5581d6a0c000-5581d6a5f000 r-xp 00010000 fd:01 1311  /usr/bin/x`.
fn line(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (rights, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    let (_device, rest) = rest.split_once(' ')?;
    let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
    if !rights.contains('x') {
        return None;
    }
    let hex = |number| u64::from_str_radix(number, 16).ok();
    let (start, end) = range.split_once('-')?;
    let path = path.trim_start().into();
    Some(Mapping { range: hex(start)?..hex(end)?, offset: hex(offset)?, inode: inode.parse().ok()?, path })
}

impl Mapping {
    /// The file itself; `None` if another one lies in its place by now.
    pub(crate) fn open(&self) -> Option<File> {
        let own = fs::read_link("/proc/self/exe").is_ok_and(|exe| exe.to_str() == Some(&*self.path));
        let path = if own { "/proc/self/exe" } else { &*self.path };
        let file = path.starts_with('/').then(|| File::open(path).ok()).flatten()?;
        file.metadata().is_ok_and(|data| data.ino() == self.inode).then_some(file)
    }

    /// The file's name without its folders; `[unknown]` for code without one.
    pub(crate) fn name(&self) -> &str {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        if name.is_empty() { "[unknown]" } else { name }
    }
}

#[cfg(test)]
mod tests {
    use super::{executable, find, parse};

    const MAPS: &str = "\
5581d6a0c000-5581d6a5f000 r-xp 00010000 fd:01 1311                       /usr/bin/a name (deleted)
7f0000000000-7f0000001000 rw-p 00000000 00:00 0
7f0000001000-7f0000002000 r-xp 00000000 00:00 0 
7ffd000000-7ffd001000 r-xp 00000000 00:00 0                          [vdso]
nonsense
";

    #[test]
    fn lines_of_the_kernel() {
        let maps = parse(MAPS);
        let names: Vec<&str> = maps.iter().map(super::Mapping::name).collect();
        assert_eq!(names, ["a name", "[unknown]", "[vdso]"]);
        assert_eq!((maps[0].offset, maps[0].inode, maps[0].range.start), (0x10000, 1311, 0x5581_d6a0_c000));
        assert!(maps[0].open().is_none() && maps[1].open().is_none());
    }

    #[test]
    fn this_function_lies_in_this_program() {
        let maps = executable();
        let mapping = find(&maps, executable as *const () as u64).unwrap();
        let me = std::env::current_exe().unwrap();
        assert_eq!(Some(mapping.name()), me.file_name().unwrap().to_str());
        assert!(mapping.open().is_some());
        assert_eq!(find(&maps, 1), None);
    }
}
