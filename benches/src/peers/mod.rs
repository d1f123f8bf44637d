//! The peers, one a file. Each is set up as its own documentation says, and hands its spans to something that counts and
//! drops them: ours alone writes files.

mod chrome;
mod fastrace;
mod puffin;
mod registry;
#[cfg(feature = "tracy")]
mod tracy;

pub use self::chrome::Chrome;
pub use self::fastrace::{Fastrace, FastraceOff};
pub use self::puffin::{Puffin, PuffinOff};
pub use self::registry::{Registry, TracingOff};
#[cfg(feature = "tracy")]
pub use self::tracy::Tracy;

use crate::ours::Fault;
use crate::subject::Subject;

/// The peers while they record nothing. To be asked before [`recording`]: that gives `tracing` a subscriber for good.
#[must_use]
pub fn off() -> Vec<Box<dyn Subject>> {
    vec![Box::new(PuffinOff), Box::new(TracingOff), Box::new(FastraceOff)]
}

/// The peers that record, each with its collector running.
pub fn recording() -> Result<Vec<Box<dyn Subject>>, Fault> {
    Ok(vec![
        Box::new(Fastrace::start()),
        Box::new(Puffin::start()),
        Box::new(Chrome::start()?),
        Box::new(Registry::new()),
        #[cfg(feature = "tracy")]
        Box::new(Tracy::start()?),
    ])
}
