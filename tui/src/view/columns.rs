//! The columns of the overview: what each shows of a row, and which stay when it gets narrow.

use std::cmp::Ordering;

use super::format::{self, UNKNOWN};
use crate::state::{Row, Sensor, milliseconds};

/// A column: its heading, its width, and the number that it shows.
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// Its width.
    pub width: usize,
    /// Whether it is about the GPU rather than the lane.
    pub hardware: bool,
    value: Value,
}

/// What a column shows.
enum Value {
    Text(fn(&Row) -> Option<String>),
    Number(fn(&Row) -> Option<f64>, fn(f64) -> String),
}

const fn lane(title: &'static str, width: usize, number: fn(&Row) -> Option<f64>, write: fn(f64) -> String) -> Column {
    Column { title, width, hardware: false, value: Value::Number(number, write) }
}

const fn gpu(title: &'static str, width: usize, number: fn(&Row) -> Option<f64>, write: fn(f64) -> String) -> Column {
    Column { title, width, hardware: true, value: Value::Number(number, write) }
}

/// The columns between name and bar, as they stand.
pub const COLUMNS: [Column; 12] = [
    Column { title: "device", width: 8, hardware: false, value: Value::Text(device) },
    lane("it/s", 6, |row| row.lane?.rate(), format::three_digits),
    lane("ms/it", 7, milliseconds, format::three_digits),
    lane("GPU ms", 7, |row| Some(row.lane?.table.as_ref()?.total_device?.mean_ns / 1e6), format::three_digits),
    lane("waits", 6, |row| row.lane?.waiting(), format::percent),
    lane("CPU", 6, |row| row.lane?.table.as_ref()?.cpu_share, format::percent),
    gpu("util", 5, |row| row.gpu?.now(Sensor::Utilization).map(|percent| percent / 100.0), format::percent),
    gpu("mem", 5, |row| row.gpu?.memory_share(), format::percent),
    gpu("power", 5, |row| row.gpu?.power_share(), format::percent),
    gpu("MHz", 5, |row| row.gpu?.now(Sensor::Clock), |mhz| format!("{mhz:.0}")),
    gpu("°C", 3, |row| row.gpu?.now(Sensor::Temperature), |degrees| format!("{degrees:.0}")),
    Column { title: "limit", width: 7, hardware: true, value: Value::Text(limit) },
];

/// Which columns stay, the most telling first.
const PRIORITY: [usize; 12] = [2, 4, 6, 11, 5, 1, 3, 8, 7, 10, 0, 9];
/// The same where no GPU was read.
const WITHOUT_GPUS: [usize; 6] = [2, 4, 5, 1, 0, 3];
/// The same where there is no run.
const GPUS_ALONE: [usize; 6] = [6, 11, 8, 7, 10, 9];

fn device(row: &Row) -> Option<String> {
    row.lane.map(|lane| lane.device.clone()).or_else(|| row.gpu.map(|gpu| gpu.device.clone()))
}

/// Why the clock is low; whether the GPU is there at all.
fn limit(row: &Row) -> Option<String> {
    let gpu = row.gpu?;
    let word = if gpu.lost { "lost" } else { gpu.throttle().unwrap_or(UNKNOWN) };
    // Of a divided GPU the sensors tell little.
    Some(if gpu.mig && word == UNKNOWN { "MIG".to_owned() } else { word.to_owned() })
}

impl Column {
    /// What stands in a row: nothing where the question makes no sense, `N/A` where the answer is not known.
    pub fn text(&self, row: &Row) -> String {
        let on_gpu = row.gpu.is_some() || row.lane.is_some_and(|lane| lane.device.starts_with("cuda"));
        if (self.hardware && (row.again || !on_gpu)) || (!self.hardware && row.lane.is_none() && self.title != "device")
        {
            return String::new();
        }
        match &self.value {
            Value::Text(text) => text(row).unwrap_or_else(|| UNKNOWN.to_owned()),
            Value::Number(number, write) => format::known(number(row), write),
        }
    }

    /// Least, middle and greatest of the rows; `None` for a column of words.
    pub fn summary(&self, rows: &[Row]) -> Option<[String; 3]> {
        let Value::Number(number, write) = &self.value else { return None };
        let mut values: Vec<f64> = rows.iter().filter(|row| !(self.hardware && row.again)).filter_map(number).collect();
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        let at = |index: usize| values.get(index).copied();
        let ends = [at(0), at(values.len() / 2), values.len().checked_sub(1).and_then(at)];
        Some(ends.map(|value| format::known(value, write)))
    }
}

/// The columns for which there is room beside a legible bar.
pub fn choose(mut room: usize, (lanes, hardware): (bool, bool)) -> Vec<&'static Column> {
    let order: &[usize] = match (lanes, hardware) {
        (false, true) => &GPUS_ALONE,
        (_, true) => &PRIORITY,
        (_, false) => &WITHOUT_GPUS,
    };
    let mut chosen = Vec::new();
    for index in order {
        if COLUMNS[*index].width < room {
            room -= COLUMNS[*index].width + 1;
            chosen.push(*index);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|index| &COLUMNS[index]).collect()
}
