//! Fits a finished frame to what the terminal can show. Views draw in full colour and Unicode; this is the one place
//! that takes both away, so nothing slips through.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Style};

/// How many colours the terminal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colors {
    /// None: NO_COLOR, `--no-color`.
    None,
    /// The 16 of every terminal.
    Sixteen,
    /// The palette of 256.
    Palette,
    /// 24 bits.
    #[default]
    True,
}

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset {
    /// Colours.
    pub colors: Colors,
    /// Whether letters beyond ASCII arrive.
    pub unicode: bool,
    /// Whether the background is light: bright letters are then darkened.
    pub light: bool,
}

impl Default for Charset {
    fn default() -> Self {
        Self { colors: Colors::True, unicode: true, light: false }
    }
}

impl Charset {
    /// What the environment says: NO_COLOR, COLORTERM, TERM, the character set of LC_ALL, LC_CTYPE or LANG, and the
    /// background in COLORFGBG.
    #[must_use]
    pub fn of_environment(read: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| read(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let true_color = set("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit");
        let colors = match term.as_str() {
            _ if set("NO_COLOR").is_some() => Colors::None,
            "dumb" => Colors::None,
            _ if true_color || term.ends_with("-direct") => Colors::True,
            _ if term.contains("256color") || term.contains("kitty") || term.contains("alacritty") => Colors::Palette,
            _ => Colors::Sixteen,
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_lowercase();
        let unicode = locale.is_empty() || locale.contains("utf-8") || locale.contains("utf8");
        // `15;0`: white on black. 7 and the colours from 9 on are light.
        let ground = set("COLORFGBG").and_then(|value| value.rsplit(';').next()?.parse::<u8>().ok());
        let light = ground.is_some_and(|ground| ground == 7 || (9..=15).contains(&ground));
        // The console of Linux has a font of 512 letters: no dots, no eighths.
        Self { colors, unicode: unicode && term != "dumb" && term != "linux", light }
    }
}

/// Rewrites `frame` so that it holds only what `charset` can show.
pub fn adapt(frame: &mut Buffer, charset: Charset) {
    for cell in &mut frame.content {
        if charset.light && cell.bg == Color::Reset {
            cell.fg = darker(cell.fg);
        }
        let (fg, bg) = (color(cell.fg, charset.colors), color(cell.bg, charset.colors));
        cell.set_style(Style::new().fg(fg).bg(bg));
        if !charset.unicode && !cell.symbol().is_ascii() {
            let plain = ascii(cell.symbol());
            cell.set_char(plain);
        }
    }
}

/// A letter's colour on a light ground: as dark as it takes to be legible.
fn darker(color: Color) -> Color {
    let Color::Rgb(r, g, b) = color else { return color };
    // Luminance by the weights of sRGB; 110 of 255 has a contrast of about 5 to white.
    let luminance = 0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b);
    let factor = (110.0 / luminance.max(1.0)).min(1.0);
    let [r, g, b] = [r, g, b].map(|part| (f64::from(part) * factor) as u8);
    Color::Rgb(r, g, b)
}

fn color(color: Color, colors: Colors) -> Color {
    match (colors, color) {
        (Colors::None, _) => Color::Reset,
        (Colors::Palette, Color::Rgb(r, g, b)) => Color::Indexed(nearest_of_256([r, g, b])),
        (Colors::Sixteen, Color::Rgb(r, g, b)) => nearest_of_16([r, g, b]),
        (_, color) => color,
    }
}

/// The 6x6x6 cube of the palette of 256.
fn nearest_of_256(rgb: [u8; 3]) -> u8 {
    let level = |part: u8| match part {
        0..48 => 0,
        48..115 => 1,
        _ => (part - 35) / 40,
    };
    let [r, g, b] = rgb.map(level);
    16 + 36 * r + 6 * g + b
}

/// By what the palette's colours are for, rather than by distance: on 16 colours distance makes half of them grey.
fn nearest_of_16([r, g, b]: [u8; 3]) -> Color {
    let spread = r.max(g).max(b) - r.min(g).min(b);
    if spread < 48 {
        return match r.max(g).max(b) {
            0..64 => Color::Black,
            64..200 => Color::DarkGray,
            _ => Color::White,
        };
    }
    match (r > 150, g > 150, b > 150) {
        (true, true, _) => Color::Yellow,
        (true, false, true) => Color::Magenta,
        (true, false, false) => Color::Red,
        (false, true, true) => Color::Cyan,
        (false, true, false) => Color::Green,
        (false, false, _) if g > 110 && b > 150 => Color::Blue,
        (false, false, true) => Color::Blue,
        (false, false, false) => Color::Green,
    }
}

/// The nearest ASCII letter: lines become lines, blocks become a ramp, foreign letters become `?`.
fn ascii(symbol: &str) -> char {
    match symbol.chars().next().unwrap_or(' ') {
        '─' | '━' | '╌' | '–' | '—' => '-',
        '│' | '┃' | '▏' | '┆' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╭' | '╮' | '╰' | '╯' => '+',
        '▁' => '_',
        '▂' => '.',
        '▃' => ':',
        '▄' => '-',
        '▅' => '=',
        '▆' => '+',
        '▇' => '*',
        '█' | '■' | '▓' => '#',
        '░' | '▒' => ':',
        '·' => '.',
        '…' => '~',
        '▸' => '>',
        '▾' => 'v',
        '▴' => '^',
        '°' => 'o',
        '•' | '●' | '\u{2801}'..='\u{28ff}' => '*',
        '○' | '□' => 'o',
        '✕' => 'x',
        'µ' => 'u',
        '×' => 'x',
        '↑' => '^',
        '↓' => 'v',
        '→' => '>',
        'Δ' => 'd',
        '\u{2800}' => ' ',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Charset {
        let value = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Charset::of_environment(value)
    }

    #[test]
    fn the_environment_decides() {
        let xterm = [("TERM", "xterm-256color"), ("LANG", "en_US.UTF-8")];
        assert_eq!(environment(&xterm), Charset { colors: Colors::Palette, ..Charset::default() });
        assert_eq!(environment(&[("COLORTERM", "truecolor")]).colors, Colors::True);
        assert_eq!(environment(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]).colors, Colors::None);
        assert!(!environment(&[("TERM", "xterm"), ("LANG", "de_DE.ISO-8859-1")]).unicode);
        for term in ["screen", "tmux", "vt220"] {
            assert_eq!(environment(&[("TERM", term), ("LANG", "C.UTF-8")]).colors, Colors::Sixteen, "{term}");
        }
        assert_eq!(environment(&[("NO_COLOR", ""), ("COLORTERM", "truecolor")]).colors, Colors::True);
        assert_eq!(
            environment(&[("TERM", "linux"), ("LC_ALL", "C.UTF-8")]),
            Charset { colors: Colors::Sixteen, unicode: false, light: false }
        );
    }

    #[test]
    fn a_light_ground_is_known_by_its_number_and_darkens_letters() {
        assert!(environment(&[("COLORFGBG", "0;15")]).light && !environment(&[("COLORFGBG", "15;0")]).light);
        let mut frame = Buffer::empty(Rect::new(0, 0, 2, 1));
        let sky = Color::Rgb(0x56, 0xb4, 0xe9);
        frame.set_string(0, 0, "a", Style::new().fg(sky));
        frame.set_string(1, 0, "b", Style::new().fg(sky).bg(Color::Rgb(0, 0, 0)));
        adapt(&mut frame, Charset { light: true, ..Charset::default() });
        assert_eq!(frame[(0, 0)].fg, Color::Rgb(0x39, 0x78, 0x9c));
        assert_eq!(frame[(1, 0)].fg, sky, "a segment of a bar has a ground of its own");
    }

    #[test]
    fn nothing_beyond_the_charset_is_left() {
        let mut frame = Buffer::empty(Rect::new(0, 0, 12, 1));
        frame.set_string(0, 0, "a▁█─目·⣿", Style::new().fg(Color::Rgb(0, 114, 178)).bg(Color::Red));
        adapt(&mut frame, Charset { colors: Colors::None, unicode: false, light: false });
        let text: String = frame.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(text.trim_end(), "a_#-? .*");
        assert!(frame.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    }

    #[test]
    fn fewer_colours_stay_colours() {
        assert_eq!(color(Color::Rgb(0, 0x72, 0xb2), Colors::Palette), Color::Indexed(25));
        assert_eq!(color(Color::Rgb(0, 0x72, 0xb2), Colors::Sixteen), Color::Blue);
        assert_eq!(color(Color::Rgb(0xd5, 0x5e, 0), Colors::Sixteen), Color::Red);
        assert_eq!(color(Color::Rgb(0x80, 0x88, 0x96), Colors::Sixteen), Color::DarkGray);
    }
}
