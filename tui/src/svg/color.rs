//! Terminal colours as the web writes them.

use ratatui::style::Color;

/// Behind everything.
pub const GROUND: &str = "#14181f";
/// Text in the terminal's own colour.
pub const INK: &str = "#d5dae1";

/// `color` as `#rrggbb`; `own` where it is the terminal's own.
pub fn hex(color: Color, own: &str) -> String {
    let [r, g, b] = match color {
        Color::Reset => return own.to_owned(),
        Color::Rgb(r, g, b) => [r, g, b],
        Color::Indexed(index) => indexed(index),
        named => indexed(number(named)),
    };
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn number(named: Color) -> u8 {
    match named {
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        _ => 0,
    }
}

/// The palette of 256: 16 named, a cube of 6x6x6, 24 greys.
fn indexed(index: u8) -> [u8; 3] {
    const NAMED: [[u8; 3]; 16] = [
        [0x1c, 0x21, 0x29],
        [0xf0, 0x52, 0x4f],
        [0x3f, 0xa6, 0x6b],
        [0xd9, 0xb4, 0x3a],
        [0x3d, 0x84, 0xd6],
        [0xb8, 0x6f, 0xc4],
        [0x3b, 0xa8, 0xb8],
        [0xb9, 0xc0, 0xca],
        [0x6c, 0x75, 0x82],
        [0xff, 0x7a, 0x76],
        [0x6a, 0xd0, 0x95],
        [0xf5, 0xd7, 0x6e],
        [0x6f, 0xad, 0xf2],
        [0xd8, 0x9c, 0xe2],
        [0x6f, 0xd3, 0xe0],
        [0xf2, 0xf5, 0xf8],
    ];
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..16 => NAMED[usize::from(index)],
        16..232 => [(index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6].map(level),
        _ => [8 + 10 * (index - 232); 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_colour_has_a_hex() {
        assert_eq!(hex(Color::Reset, GROUND), GROUND);
        assert_eq!(hex(Color::Rgb(0, 114, 178), INK), "#0072b2");
        assert_eq!(hex(Color::Red, INK), "#f0524f");
        assert_eq!(hex(Color::Indexed(25), INK), "#005faf");
        assert_eq!(hex(Color::Indexed(255), INK), "#eeeeee");
    }
}
