//! Colours by meaning. The palette is Okabe and Ito's: told apart with every common colour blindness.

use ratatui::style::{Color, Modifier, Style};

const BLUE: Color = Color::Rgb(0x00, 0x72, 0xb2);
const SKY: Color = Color::Rgb(0x56, 0xb4, 0xe9);
const GREEN: Color = Color::Rgb(0x00, 0x9e, 0x73);
const YELLOW: Color = Color::Rgb(0xf0, 0xe4, 0x42);
const ORANGE: Color = Color::Rgb(0xe6, 0x9f, 0x00);
const VERMILLION: Color = Color::Rgb(0xd5, 0x5e, 0x00);
const PURPLE: Color = Color::Rgb(0xcc, 0x79, 0xa7);
const SLATE: Color = Color::Rgb(0x4a, 0x52, 0x60);
const GREY: Color = Color::Rgb(0x80, 0x88, 0x96);
const INK: Color = Color::Rgb(0x10, 0x14, 0x18);
const PAPER: Color = Color::Rgb(0xff, 0xff, 0xff);

/// What a piece of text is, apart from what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text in the terminal's own colour, so that it is legible on any background.
    Plain,
    /// Labels, rules, hints.
    Dim,
    /// Values to look at first.
    Strong,
    /// All is well.
    Good,
    /// Look at this.
    Warn,
    /// Something is lost or dead.
    Bad,
    /// The view's own lines: curves, the chosen tab.
    Accent,
    /// Curves beside the first.
    Second,
    /// Filled curves: darker, for there is much of them.
    Area,
}

/// The style of a tone.
#[must_use]
pub fn tone(tone: Tone) -> Style {
    let style = Style::new();
    match tone {
        Tone::Plain => style,
        Tone::Dim => style.fg(GREY),
        Tone::Strong => style.add_modifier(Modifier::BOLD),
        Tone::Good => style.fg(GREEN),
        Tone::Warn => style.fg(ORANGE).add_modifier(Modifier::BOLD),
        Tone::Bad => style.fg(Color::Red).add_modifier(Modifier::BOLD),
        Tone::Accent => style.fg(SKY),
        Tone::Second => style.fg(ORANGE),
        Tone::Area => style.fg(BLUE),
    }
}

/// The colour of a batch: the same wherever it goes.
#[must_use]
pub fn batch(id: u64) -> Style {
    const COLORS: [Color; 5] = [SKY, ORANGE, GREEN, PURPLE, VERMILLION];
    Style::new().fg(COLORS[(id % COLORS.len() as u64) as usize])
}

/// A stage's segment in a bar: its ground, text on it, and what fills it so that it is told apart without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    /// Background of the segment, foreground of its chip in a legend.
    pub ground: Color,
    /// Text on that background.
    pub ink: Color,
    /// Fills the segment where it carries no text.
    pub fill: char,
}

/// The paint of a stage, by what it does: the same work looks the same on every lane.
#[must_use]
pub fn stage(name: &str) -> Paint {
    let work = name.rsplit_once('.').map_or(name, |(_, work)| work);
    let (ground, ink, fill) = match work {
        "wait" => (SLATE, PAPER, '·'),
        "put" => (GREY, INK, '·'),
        "residue" => (Color::Reset, Color::Reset, '░'),
        _ if name.starts_with("sync.") => (Color::Red, PAPER, ' '),
        "forward" | "tokenize" => (BLUE, PAPER, ' '),
        "backward" => (VERMILLION, PAPER, ' '),
        "loss" => (ORANGE, INK, ' '),
        "step" => (GREEN, PAPER, ' '),
        "upload" | "copy" | "read" | "log" => (SKY, INK, ' '),
        "pack" | "mask" | "reduce" => (PURPLE, INK, ' '),
        "anchors" | "clip" => (YELLOW, INK, ' '),
        _ => (GREEN, PAPER, ' '),
    };
    Paint { ground, ink, fill }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_every_lane_differ() {
        for lane in [
            &["read", "tokenize", "pack", "put", "residue"][..],
            &["wait", "upload", "forward", "pack", "copy", "put", "residue"],
            &["wait", "upload", "anchors", "mask", "forward", "loss", "backward", "reduce", "clip", "step", "log"],
        ] {
            for pair in lane.windows(2) {
                assert_ne!(stage(pair[0]).ground, stage(pair[1]).ground, "{pair:?}");
            }
        }
    }
}
