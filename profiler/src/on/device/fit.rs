//! A device's clock as the host's: a line through the anchors of the last minute, and a map that bends towards it.

use std::collections::VecDeque;

use super::super::clock_map::ClockMap;

/// Anchors that count: a minute of them.
const KEPT: usize = 32;
/// How far a device's rate may be from the host's, before anything is known: 20 ppm.
const RATE_SIGMA: f64 = 20e-6;
/// An anchor this many times wider than the best one says too little.
const TOO_WIDE: u64 = 5;
/// Added to a line's distance from an anchor before it counts as wrong: the granularity of the device and the jitter of
/// an interrupt.
const SLACK_NS: f64 = 500.0;
/// The map counts from here, since it has no negative numbers.
const ZERO: i64 = 1 << 60;

/// The same moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub device_ns: i64,
    pub host_ns: i64,
    /// How far `host_ns` may be off.
    pub half_ns: u64,
}

/// `host = at.host_ns + (device - at.device_ns) × rate`.
#[derive(Clone, Copy, Debug)]
struct Line {
    device_ns: i64,
    host_ns: f64,
    rate: f64,
}

impl Line {
    fn host_ns(&self, device_ns: i64) -> f64 {
        self.host_ns + (device_ns - self.device_ns) as f64 * self.rate
    }
}

/// Maps a device's clock to the host's.
#[derive(Debug, Default)]
pub(super) struct DeviceMap {
    points: VecDeque<Point>,
    map: Option<ClockMap>,
}

impl DeviceMap {
    /// Learns from an anchor; the next is expected in `next_ns`. The map itself never jumps: what was placed stays, and
    /// what follows is bent to be right when the next anchor comes.
    pub(super) fn learn(&mut self, point: Point, next_ns: i64) {
        if self.points.len() == KEPT {
            self.points.pop_front();
        }
        self.points.push_back(point);
        let ticks = ticks(point.device_ns);
        let Some(map) = &mut self.map else {
            self.map = Some(ClockMap::new((ticks, point.host_ns), 1.0));
            return;
        };
        let line = fit(self.points.make_contiguous());
        let host_ns = line.host_ns(point.device_ns).round() as i64;
        map.aim(ticks, host_ns, line.rate, next_ns.max(1) as f64);
    }

    /// On the host's clock; `None` before the first anchor.
    pub(super) fn host_ns(&self, device_ns: i64) -> Option<i64> {
        self.map.as_ref().map(|map| map.ns(ticks(device_ns)))
    }
}

fn ticks(device_ns: i64) -> u64 {
    device_ns.saturating_add(ZERO).max(0).cast_unsigned()
}

/// The line through the points, without those that are wrong.
fn fit(points: &[Point]) -> Line {
    let best = points.iter().map(|p| p.half_ns).min().unwrap_or(0);
    let narrow = |p: &&Point| p.half_ns <= best.saturating_mul(TOO_WIDE).max(1_000);
    let mut points: Vec<Point> = points.iter().filter(narrow).copied().collect();
    loop {
        let line = least_squares(&points);
        let off = |p: &Point| (p.host_ns as f64 - line.host_ns(p.device_ns)).abs() - (p.half_ns as f64 + SLACK_NS);
        let worst = points.iter().map(off).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        match worst {
            // One at a time, since a wrong point draws the line away from the right ones.
            Some((place, off)) if off > 0.0 && points.len() > 3 => points.swap_remove(place),
            _ => return line,
        };
    }
}

/// Weighted by how well each point is known; without better knowledge the rate is 1.
fn least_squares(points: &[Point]) -> Line {
    let Some(last) = points.iter().max_by_key(|p| p.device_ns) else {
        return Line { device_ns: 0, host_ns: 0.0, rate: 1.0 };
    };
    // Relative to the last point: what is left is small enough for an f64.
    let relative = |p: &Point| {
        let x = (p.device_ns - last.device_ns) as f64;
        let y = (p.host_ns - last.host_ns) as f64 - x;
        let sigma = p.half_ns.max(50) as f64 / 3_f64.sqrt();
        (x, y, 1.0 / (sigma * sigma))
    };
    let sums = points.iter().map(relative).fold([0.0; 3], |[w, x, y], p| [w + p.2, x + p.0 * p.2, y + p.1 * p.2]);
    let (x_mean, y_mean) = (sums[1] / sums[0], sums[2] / sums[0]);
    let (xy, xx) = points.iter().map(relative).fold((0.0, 0.0), |(xy, xx), (x, y, w)| {
        let dx = x - x_mean;
        (xy + w * dx * (y - y_mean), xx + w * dx * dx)
    });
    let drift = xy / (xx + 1.0 / (RATE_SIGMA * RATE_SIGMA));
    Line { device_ns: last.device_ns, host_ns: last.host_ns as f64 + y_mean - x_mean * drift, rate: 1.0 + drift }
}

#[cfg(test)]
mod tests {
    use super::{DeviceMap, Point, fit};

    /// A device that is 1,000,000 ns behind and 7 ppm slow, read every 2 s with errors of up to 3 µs.
    fn truth(device_ns: i64) -> i64 {
        device_ns + 1_000_000 + (device_ns as f64 * 7e-6).round() as i64
    }

    fn point(second: i64) -> Point {
        let error = [1_500, -2_800, 300, -900, 2_900, -1_200, 700][second as usize % 7];
        let device_ns = second * 1_000_000_000;
        Point { device_ns, host_ns: truth(device_ns) + error, half_ns: 3_500 }
    }

    #[test]
    fn finds_offset_and_drift() {
        let points: Vec<Point> = (0..30).map(|i| point(2 * i)).collect();
        let line = fit(&points);
        assert!((line.rate - 1.0 - 7e-6).abs() < 0.1e-6, "{line:?}");
        assert!((line.host_ns(60_000_000_000) - truth(60_000_000_000) as f64).abs() < 3_000.0);
    }

    #[test]
    fn a_wrong_anchor_is_left_out() {
        let mut points: Vec<Point> = (0..30).map(|i| point(2 * i)).collect();
        points[11].host_ns += 400_000;
        points[29].host_ns -= 90_000;
        points[20] = Point { host_ns: points[20].host_ns + 300_000, half_ns: 600_000, ..points[20] };
        let line = fit(&points);
        assert!((line.rate - 1.0 - 7e-6).abs() < 0.2e-6, "{line:?}");
        assert!((line.host_ns(60_000_000_000) - truth(60_000_000_000) as f64).abs() < 4_000.0);
    }

    #[test]
    fn the_map_follows_and_never_steps_back() {
        let mut map = DeviceMap::default();
        assert_eq!(map.host_ns(0), None);
        let mut last = i64::MIN;
        for second in 0..120 {
            if second % 2 == 0 {
                map.learn(point(second), 2_000_000_000);
            }
            for part in 0..1_000 {
                let device_ns = second * 1_000_000_000 + part * 1_000_000;
                let host_ns = map.host_ns(device_ns).unwrap();
                assert!(host_ns > last, "steps back at {device_ns}");
                last = host_ns;
                let off = (host_ns - truth(device_ns)).abs();
                let allowed = if second < 8 { 20_000 } else { 4_000 };
                assert!(off < allowed, "{off} ns off at {device_ns}");
            }
        }
        assert!((map.host_ns(-5_000).unwrap() - truth(-5_000)).abs() < 4_000, "before the first anchor");
    }
}
