//! Blocks, rules and braille dots as shapes: fonts disagree about where they end, and the seams would show.

use std::fmt::Write;

use ratatui::buffer::Cell;

/// Whether `symbol` is drawn here rather than as text.
pub fn is_shape(symbol: &str) -> bool {
    matches!(symbol.chars().next(), Some('▁'..='█' | '░' | '▏' | '■' | '─' | '│' | '└' | '\u{2800}'..='\u{28ff}'))
}

/// Draws a run of equally coloured shapes whose first cell's corner is at `(x, y)`.
pub fn draw(svg: &mut String, cells: &[Cell], (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
    // Edges on pixels, or neighbouring shapes show a seam; dots are round and need their soft ones.
    let dotted = cells.iter().any(|cell| matches!(cell.symbol().chars().next(), Some('\u{2800}'..='\u{28ff}')));
    let crisp = if dotted { "" } else { " shape-rendering=\"crispEdges\"" };
    let _ = write!(svg, "<g fill=\"{fill}\"{crisp}>");
    let symbols: Vec<char> = cells.iter().map(|cell| cell.symbol().chars().next().unwrap_or(' ')).collect();
    let mut first = 0;
    for same in symbols.chunk_by(|a, b| a == b && is_solid(*a)) {
        // One shape for neighbours that are alike: side by side they would show a seam.
        let at = (x + first as f64 * width, y);
        shape(svg, same[0], at, (width * same.len() as f64, height));
        first += same.len();
    }
    svg.push_str("</g>\n");
}

/// Whether neighbours of this kind touch.
fn is_solid(symbol: char) -> bool {
    matches!(symbol, '▁'..='█' | '░' | '─')
}

fn shape(svg: &mut String, symbol: char, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let (middle, half) = (x + width / 2.0, y + height / 2.0);
    match symbol {
        '▁'..='█' => {
            let tall = height * f64::from(symbol as u32 - '▁' as u32 + 1) / 8.0;
            bar(svg, (x, y + height - tall), (width, tall), 1.0);
        }
        '░' => bar(svg, (x, y), (width, height), 0.3),
        '■' => bar(svg, (x, y + height * 0.25), (width, height * 0.5), 1.0),
        '▏' => bar(svg, (x, y), (1.0, height), 1.0),
        '─' => bar(svg, (x, half), (width, 1.0), 1.0),
        '│' => bar(svg, (middle, y), (1.0, height), 1.0),
        '└' => {
            bar(svg, (middle, y), (1.0, height / 2.0), 1.0);
            bar(svg, (middle, half), (width / 2.0, 1.0), 1.0);
        }
        dots => braille(svg, dots as u32 & 0xff, (x, y), (width, height)),
    }
}

fn bar(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), opacity: f64) {
    let faint = if opacity < 1.0 { format!(" opacity=\"{opacity}\"") } else { String::new() };
    let _ = write!(svg, "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"{faint}/>");
}

/// Bits of a braille cell in Unicode's order: 1 2 3 down the left, 4 5 6 down the right, 7 and 8 below.
fn braille(svg: &mut String, bits: u32, (x, y): (f64, f64), (width, height): (f64, f64)) {
    const PLACES: [(f64, f64); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    for (bit, (column, row)) in PLACES.into_iter().enumerate() {
        if bits >> bit & 1 == 1 {
            let (cx, cy) = (x + width * (0.25 + column / 2.0), y + height * (0.125 + row / 4.0));
            let _ = write!(svg, "<circle cx=\"{cx:.2}\" cy=\"{cy:.2}\" r=\"1.35\"/>");
        }
    }
}
