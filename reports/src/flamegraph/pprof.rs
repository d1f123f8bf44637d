//! pprof's profile: protocol buffers in gzip, as `go tool pprof` reads them.
//!
//! | message | fields used |
//! |---|---|
//! | Profile | sample_type 1, sample 2, location 4, function 5, string_table 6, duration_nanos 10, default_sample_type 14 |
//! | ValueType | type 1, unit 2 (both: index of a string) |
//! | Sample | location_id 1 (the innermost first), value 2 |
//! | Location | id 1, line 4 (function_id 1) |
//! | Function | id 1, name 2, system_name 3 |

use super::{Graph, Time};
use crate::text::harmless;
use crate::trace::proto::Message;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Bytes that are handed on together.
const PIECE: usize = 64 << 10;

impl Graph {
    /// Writes the graph for pprof, names as they are, but for what could drive the terminal that pprof prints them to.
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_pprof(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = GzEncoder::new(out, Compression::default());
        // A location's and a function's number is its name's; the names begin the list of strings.
        let names = self.stacks.names.len() as u64;
        let mut profile = Message::default();
        profile.message(1, |kind| {
            kind.uint(1, names);
            kind.uint(2, names + 1);
        });
        let mut outcome = Ok(());
        self.stacks.walk(
            |_| true,
            |node, _| {
                let own = self.stacks.nodes[node as usize].own;
                if own > 0 && outcome.is_ok() {
                    profile.message(2, |sample| {
                        let frames = self.stacks.upwards(node);
                        sample.packed(1, frames.map(|frame| u64::from(self.stacks.nodes[frame as usize].name)));
                        sample.packed(2, [own]);
                    });
                    outcome = hand_on(&mut profile, PIECE, &mut out);
                }
            },
        );
        outcome?;
        for name in 1..names {
            profile.message(4, |location| {
                location.uint(1, name);
                location.message(4, |line| line.uint(1, name));
            });
            profile.message(5, |function| [1, 2, 3].into_iter().for_each(|field| function.uint(field, name)));
            hand_on(&mut profile, PIECE, &mut out)?;
        }
        let kind = match self.time {
            Time::Wall => "wall",
            Time::Device => "device",
            Time::Cpu => "samples",
        };
        let unit = if self.time == Time::Cpu { "count" } else { "nanoseconds" };
        // The first string must be empty; a frame without a name has none, either.
        for text in self.stacks.names.iter().map(String::as_str).chain([kind, unit]) {
            profile.text(6, &harmless(text));
            hand_on(&mut profile, PIECE, &mut out)?;
        }
        profile.uint(14, names);
        hand_on(&mut profile, 1, &mut out)?;
        out.finish().map(drop)
    }
}

fn hand_on(profile: &mut Message, from: usize, out: &mut impl Write) -> io::Result<()> {
    if profile.0.len() >= from {
        out.write_all(&profile.0)?;
        profile.0.clear();
    }
    Ok(())
}
