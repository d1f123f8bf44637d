//! Call sites: each name becomes a small number once, at its first use, so that a record holds no text.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::cpu::helpers;

/// One place in the source with a [`span!`](crate::span) in it.
#[derive(Debug)]
pub struct Site {
    name: &'static str,
    /// 0: not yet registered.
    id: AtomicU32,
}

/// Every name, by id - 1. Places with the same name share an id.
#[derive(Default)]
struct Registry {
    names: Vec<&'static str>,
    ids: HashMap<&'static str, u32>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

impl Site {
    /// A call site that has not been reached yet.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, id: AtomicU32::new(0) }
    }

    /// The number of its name, never 0.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        match self.id.load(Ordering::Relaxed) {
            0 => self.register(),
            id => id,
        }
    }

    #[cold]
    fn register(&self) -> u32 {
        let id = with(|registry| {
            *registry.ids.entry(self.name).or_insert_with(|| {
                registry.names.push(self.name);
                registry.names.len() as u32
            })
        });
        helpers::note_site(id, self.name);
        self.id.store(id, Ordering::Relaxed);
        id
    }
}

/// The name behind an id; 0 is what lies between the stages.
#[cold]
pub(crate) fn name(id: u32) -> &'static str {
    if id == 0 {
        return dflash_timeline::iterations::RESIDUE;
    }
    with(|registry| registry.names.get(id as usize - 1).copied().unwrap_or("?"))
}

fn with<T>(use_it: impl FnOnce(&mut Registry) -> T) -> T {
    let mut registry = REGISTRY.lock().unwrap_or_else(|e| e.into_inner());
    use_it(registry.get_or_insert_default())
}

#[cfg(test)]
mod tests {
    use super::{Site, name};

    #[test]
    fn a_name_has_one_id() {
        let (a, b, c) = (Site::new("site.same"), Site::new("site.same"), Site::new("site.other"));
        assert_eq!(a.id(), b.id());
        assert_ne!(a.id(), c.id());
        assert_ne!(a.id(), 0);
        assert_eq!(name(c.id()), "site.other");
        assert_eq!(name(u32::MAX), "?");
    }
}
