//! Addresses as names of functions, each looked up once.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::demangle::demangle;
use super::elf::Elf;
use super::maps::{self, Mapping};

/// Addresses that are remembered; then it begins anew.
const KNOWN: usize = 1 << 18;
/// Looks at the maps are at least so far apart.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where an address lies.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The function, or `[library]` where that has no name for it.
    pub function: Arc<str>,
    /// Path of the library.
    pub library: Arc<str>,
}

/// What is known of this process's code.
#[derive(Default)]
pub(crate) struct Symbols {
    maps: Vec<Mapping>,
    looked: Option<Instant>,
    files: HashMap<Arc<str>, Option<Elf>>,
    known: HashMap<u64, Place>,
}

impl Symbols {
    /// Where the `depth`-th frame of a stack lies, from the innermost, 0, on. The others are return addresses: the call
    /// lies before, and what follows it may be another function.
    pub(crate) fn place(&mut self, address: u64, depth: usize) -> Place {
        let address = if depth == 0 { address } else { address.wrapping_sub(1) };
        if let Some(place) = self.known.get(&address) {
            return place.clone();
        }
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        let place = self.look_up(address);
        self.known.insert(address, place.clone());
        place
    }

    fn look_up(&mut self, address: u64) -> Place {
        let Some(mapping) = self.mapping(address) else {
            let unknown: Arc<str> = "[unknown]".into();
            return Place { function: Arc::clone(&unknown), library: unknown };
        };
        let elf = self.files.entry(Arc::clone(&mapping.path)).or_insert_with(|| mapping.open().and_then(Elf::read));
        let at = address - mapping.range.start + mapping.offset;
        let symbol = elf.as_ref().and_then(|elf| elf.symbol(elf.address(at)?));
        let function = symbol.map_or_else(|| bracketed(mapping.name()), |symbol| demangle(&symbol));
        Place { function: function.into(), library: mapping.path }
    }

    fn mapping(&mut self, address: u64) -> Option<Mapping> {
        let found = maps::find(&self.maps, address);
        if found.is_some() || self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return found.cloned();
        }
        self.looked = Some(Instant::now());
        self.maps = maps::executable();
        maps::find(&self.maps, address).cloned()
    }
}

impl Place {
    /// Whether the library is one of these, by path or by file name.
    pub(crate) fn is_in(&self, libraries: &[String]) -> bool {
        let name = self.library.rsplit_once('/').map_or(&*self.library, |(_, name)| name);
        libraries.iter().any(|library| **library == *self.library || library == name)
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbols").field("files", &self.files.len()).field("known", &self.known.len()).finish()
    }
}

fn bracketed(name: &str) -> String {
    if name.starts_with('[') { name.to_owned() } else { format!("[{name}]") }
}

#[cfg(test)]
mod tests {
    use super::{Place, Symbols};

    #[test]
    fn functions_of_this_program_and_of_a_library_have_names() {
        let mut symbols = Symbols::default();
        let own = symbols.place(super::bracketed as *const () as u64, 0);
        assert!(own.function.ends_with("symbols::bracketed"), "{own:?}");
        assert_eq!(&*symbols.place(16, 0).function, "[unknown]");
    }

    #[test]
    fn libraries_are_blocked_by_whole_names_only() {
        let place = Place { function: "f".into(), library: "/usr/lib/libcuda.so.1".into() };
        let blocked = |library: &str| place.is_in(&[library.to_owned()]);
        assert!(blocked("libcuda.so.1") && blocked("/usr/lib/libcuda.so.1"));
        assert!(
            !blocked("libc") && !blocked("libcuda.so") && !blocked("libcuda.so.12") && !blocked("lib/libcuda.so.1")
        );
    }
}
