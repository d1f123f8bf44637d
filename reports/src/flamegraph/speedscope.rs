//! speedscope's JSON (<https://www.speedscope.app>): a sampled profile whose stacks are lists of frames.

use super::{Graph, Time};
use serde_json::json;
use std::io::{self, Write};

/// The format's name for itself.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

impl Graph {
    /// Writes the graph for speedscope, names as they are.
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_speedscope(&self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        let exporter = concat!("dflash ", env!("CARGO_PKG_VERSION"));
        let (schema, exporter, text) = (json!(SCHEMA), json!(exporter), json!(name));
        write!(out, "{{\"$schema\":{schema},\"exporter\":{exporter},\"name\":{text},\"activeProfileIndex\":0,")?;
        out.write_all(b"\"shared\":{\"frames\":[")?;
        // The first name is that of the root, which is no frame.
        for (at, name) in self.stacks.names.iter().skip(1).enumerate() {
            let name = if name.is_empty() { "?" } else { name };
            write!(out, "{}{{\"name\":{}}}", if at > 0 { "," } else { "" }, json!(name))?;
        }
        let (title, total) = (json!(format!("{} time", self.time.as_str())), self.total());
        // speedscope knows no unit for samples.
        let unit = if self.time == Time::Cpu { "none" } else { "nanoseconds" };
        write!(out, "]}},\"profiles\":[{{\"type\":\"sampled\",\"name\":{title},\"unit\":\"{unit}\",")?;
        write!(out, "\"startValue\":0,\"endValue\":{total},\"samples\":[")?;
        let weights = self.write_samples(out)?;
        out.write_all(b"],\"weights\":[")?;
        for (at, weight) in weights.iter().enumerate() {
            write!(out, "{}{weight}", if at > 0 { "," } else { "" })?;
        }
        out.write_all(b"]}]}\n")
    }

    /// A list of frames per stack, the outermost first. Returns their weights.
    fn write_samples(&self, out: &mut dyn Write) -> io::Result<Vec<u64>> {
        let (mut weights, mut stack, mut outcome) = (Vec::new(), Vec::new(), Ok(()));
        self.stacks.walk(
            |_| true,
            |node, depth| {
                stack.truncate(depth);
                stack.push(self.stacks.nodes[node as usize].name - 1);
                let own = self.stacks.nodes[node as usize].own;
                if own > 0 && outcome.is_ok() {
                    outcome = write_list(out, !weights.is_empty(), &stack);
                    weights.push(own);
                }
            },
        );
        outcome.map(|()| weights)
    }
}

fn write_list(out: &mut dyn Write, comma: bool, numbers: &[u32]) -> io::Result<()> {
    out.write_all(if comma { b",[" } else { b"[" })?;
    for (at, number) in numbers.iter().enumerate() {
        write!(out, "{}{number}", if at > 0 { "," } else { "" })?;
    }
    out.write_all(b"]")
}
