//! The recorded timing stream of dflash: records, writer, tolerant reader, and the run directory it lies in.
//!
//! [`read`] gives a run's [`Timeline`], [`Tail`] follows one that is being written, [`SegmentWriter`] writes one. The
//! bytes are described at the top of `format.rs` (blocks) and `encode.rs` (records).

mod appender;
mod assemble;
mod attach;
mod by_lane;
mod clock;
pub mod control;
mod decode;
mod dictionary;
mod encode;
mod error;
mod files;
mod format;
mod hold;
mod intern;
pub mod iterations;
mod later;
mod listing;
mod manifest;
pub mod metrics;
pub mod order;
mod pack;
mod part;
mod parts;
mod process;
mod quick;
mod rank;
mod read;
pub mod record;
mod regular;
mod run_dir;
mod scan;
mod segment;
pub mod signed_rank;
mod sync;
mod table;
mod tail;
mod tee;
mod texts;
mod timeline;
mod utc;
mod varint;
mod visit;

pub use clock::Shift;
pub use error::{Error, Result};
pub use files::StreamOptions;
pub use iterations::{IterationRow, Iterations, IterationsWriter, PartOptions, iterations, read_iterations};
pub use manifest::{GpuDetails, MANIFEST_SCHEMA, Manifest, State};
pub use metrics::{MetricsRow, MetricsWriter, read_metrics};
pub use read::{ReadOptions, read, read_with, visit};
pub use run_dir::{RankTrouble, RunDir};
pub use segment::SegmentWriter;
pub use sync::SyncStats;
pub use tail::Tail;
pub use timeline::{Health, Timeline};
pub use visit::{Account, Visit};
