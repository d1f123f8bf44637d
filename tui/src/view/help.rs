//! Keys and words.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::text;
use super::theme::Tone;
use super::write::{self, piece};
use crate::state::{Extent, State};

/// What stands on the left, and what it means; an empty left side is a heading.
pub const LINES: [(&str, &str); 54] = [
    ("", "Keys"),
    ("1 to 9, Tab", "the views"),
    ("q, Ctrl-C", "quit"),
    ("  train --top", "q leaves the view, Ctrl-C ends the run"),
    ("Esc", "closes what is open; quits from the overview"),
    ("?, h", "this help (in Stages and Timeline, h is left)"),
    ("j k, arrows", "scroll; PgUp, PgDn, Home, End too"),
    ("h l, left, right", "lane before, next lane (Stages); earlier, later (Timeline)"),
    ("s, S, r", "sort by the next column, the one before; turn round"),
    ("/", "only rows that contain a text"),
    ("b", "compare stages to the baseline; without one, to now"),
    ("w", "average over 10 s, 1 min, 10 min, all there is"),
    ("+, -", "look at the run less often, more often"),
    ("p, space", "hold still, go on; play a finished run from its start"),
    ("[ ], { }", "a step back, on, through the recording; ten steps"),
    ("<, >", "play half as fast, twice as fast"),
    ("z, Z", "a shorter, a longer stretch (Timeline)"),
    ("m", "the mouse: tabs and wheel; off, so that text can be selected"),
    ("Ctrl-L, Ctrl-Z", "draw everything anew; stop, fg continues"),
    ("", "Ask the run (each is confirmed first)"),
    ("L", "how much it records: off, stages, layers"),
    ("C", "sample the CPU time of its threads for 30 s"),
    ("K", "capture the kernels of 3 iterations"),
    ("T", "what every thread does now"),
    ("W", "write a checkpoint after this step"),
    ("M", "a note into its timeline"),
    ("", "Words"),
    ("lane", "one worker's thread of work, with its device"),
    ("iteration", "one pass of a lane's loop; its stages and residue fill it"),
    ("stage", "a named stretch of an iteration"),
    ("*.wait, *.put", "the lane waits for input, for room in the next queue"),
    ("residue", "iteration minus its stages: time without a name"),
    ("waits", "share of the time in *.wait and *.put"),
    ("CPU", "CPU time of the lane's own thread, of wall time"),
    ("GPU ms", "time between CUDA events, per iteration; N/A on a CPU"),
    ("util", "share of the time with a kernel at work, by NVML"),
    ("mem, power", "of the GPU's memory, of its power limit"),
    ("limit", "what keeps its clock low: power, heat, HW slow, brake, idle"),
    ("change", "median against the baseline's; dflash diff says if it is real"),
    ("tokens/s", "context tokens without padding, trained on by the drafters"),
    ("tau", "acceptance length on held-out prompts"),
    ("N/A", "not measured; it is not 0"),
    ("", "Head"),
    ("alive", "the trainer's process is there"),
    ("running on HOST", "judged by the age of its newest block"),
    ("silent", "another host's run wrote nothing for 30 s"),
    ("died", "run.json says running, the process is gone"),
    ("lost", "records dropped because the disk or a ring was full"),
    ("bad block", "a part of the timeline that failed its checksum"),
    ("INCOMPLETE", "a full disk, or a hang: the red line says which"),
    ("torn", "the run ended without writing its timeline's end"),
    ("last block", "age of the newest record"),
    ("detail from", "what is older was deleted on purpose"),
    ("the verdict", "the same as in `dflash report`, over the window"),
];

/// Draws the help from the line that is scrolled to.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let page = usize::from(area.height);
    let extent = Extent { page, last: LINES.len().saturating_sub(page), ..Extent::default() };
    let shown = LINES.iter().skip(state.scroll.min(extent.last)).take(page);
    for (index, (left, meaning)) in shown.enumerate() {
        if left.is_empty() {
            write::heading(area, frame, index, meaning, "");
        } else {
            let pieces = vec![piece(&text::left(left, 18), Tone::Accent), piece(meaning, Tone::Plain)];
            write::line(area, frame, index, Line::from(pieces));
        }
    }
    extent
}
