//! The recorded timing stream of dflash: records, writer, tolerant reader, and the run directory it lies in.
//!
//! [`read`] gives a run's [`Timeline`], [`Tail`] follows one that is being written, [`SegmentWriter`] writes one. The
//! bytes are described at the top of `format.rs` (blocks) and `encode.rs` (records).

mod assemble;
pub mod control;
mod decode;
mod encode;
mod error;
mod format;
mod intern;
pub mod iterations;
mod manifest;
pub mod metrics;
mod process;
pub mod record;
mod run_dir;
mod scan;
mod segment;
mod table;
mod tail;
mod timeline;
mod utc;
mod varint;

pub use error::{Error, Result};
pub use iterations::{IterationRow, IterationsWriter, read_iterations};
pub use manifest::{MANIFEST_SCHEMA, Manifest, State};
pub use metrics::{MetricsRow, MetricsWriter, read_metrics};
pub use run_dir::RunDir;
pub use segment::SegmentWriter;
pub use tail::{Tail, read};
pub use timeline::{Health, Timeline};
