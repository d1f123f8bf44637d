//! Packing a part of iterations.csv, on the thread `dflash-pack`.
//!
//! A day of 400 rows a second is to stay below 300 MB for as long as a run is kept. The last digits of nanoseconds are noise
//! that nothing compresses (470 MB a day), so that a packed part keeps less, by these rules:
//!
//! - host times are whole microseconds. Rounded are the sums: of the first stage, the first two, …, down. So each time is
//!   off by less than a microsecond, and stages and residue still add up to their total, exactly;
//! - device times are rounded to the nearest microsecond;
//! - every row of an iteration begins when its iteration does, in whole microseconds. The stages' own begins are in the
//!   timeline, for as long as `keep` has it.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};
use crate::iterations::{COLUMNS, IterationRow, TOTAL, fields, parse};
use crate::parts;
use crate::sync::own_cpu_ns;
use crate::table::Table;

/// How hard it is packed: a day of 400 rows a second takes some 15 minutes of one core, and a third less room than quick
/// packing.
const LEVEL: i32 = 16;

/// Hands parts to the thread. It ends when this is dropped, after what it is doing.
#[derive(Debug)]
pub(crate) struct Packer {
    parts: Sender<PathBuf>,
    problem: Arc<Mutex<Option<String>>>,
    cpu_ns: Arc<AtomicU64>,
}

impl Packer {
    /// Starts the thread; `None` if the system has none to give: the parts stay plain then.
    pub(crate) fn start() -> Option<Self> {
        let (parts, todo) = channel();
        let problem = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&problem);
        let cpu_ns = Arc::new(AtomicU64::new(0));
        let took = Arc::clone(&cpu_ns);
        thread::Builder::new().name("dflash-pack".to_owned()).spawn(move || run(&todo, &theirs, &took)).ok()?;
        Some(Self { parts, problem, cpu_ns })
    }

    pub(crate) fn pack(&self, plain: PathBuf) {
        // Without its thread the part stays plain, and readers take that.
        let _ = self.parts.send(plain);
    }

    /// CPU time of the thread so far, nanoseconds.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Ordering::Relaxed)
    }

    /// Why a part stayed plain.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn run(parts: &Receiver<PathBuf>, problem: &Mutex<Option<String>>, cpu_ns: &AtomicU64) {
    for plain in parts {
        if let Err(error) = pack(&plain) {
            let mut problem = problem.lock().unwrap_or_else(PoisonError::into_inner);
            *problem = Some(format!("{error}; the part stays as it is"));
        }
        cpu_ns.store(own_cpu_ns().unwrap_or(0), Ordering::Relaxed);
    }
}

/// Packs a plain part, and removes it. If another packer is at it, as one may be that the run's last writer left behind, the
/// part is left to that one.
pub(crate) fn pack(plain: &Path) -> Result<()> {
    let packed = parts::packed(plain);
    if !packed.exists() {
        let beside = parts::beside(plain);
        let Some(file) = parts::claim(&beside).map_err(Error::io(&beside, "write it"))? else { return Ok(()) };
        if packed.exists() {
            // The other one has just ended, so that this file is of no use.
            let _ = fs::remove_file(&beside);
        } else {
            write(plain, &beside, &file)?;
            fs::rename(&beside, &packed).map_err(Error::io(&packed, "write it"))?;
        }
        if let Some(directory) = packed.parent() {
            // The new name must be on the disk before the old file goes. Not every file system lets a directory be synced.
            let _ = File::open(directory).and_then(|directory| directory.sync_all());
        }
    }
    match fs::remove_file(plain) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io(plain, "remove it")(e)),
        _ => Ok(()),
    }
}

fn write(plain: &Path, beside: &Path, file: &File) -> Result<()> {
    let io = || Error::io(beside, "write it");
    file.set_len(0).map_err(io())?;
    let packer = zstd::Encoder::new(BufWriter::new(file), LEVEL).map_err(io())?;
    let mut csv = csv::Writer::from_writer(packer);
    let wrote = |e: csv::Error| io()(e.into());
    csv.write_record(COLUMNS).map_err(wrote)?;
    let (mut table, mut group) = (Table::open(plain, &COLUMNS)?, Vec::new());
    loop {
        let row = table.next()?.map(|row| parse(&row)).transpose()?;
        let ends = row.as_ref().is_none_or(|row| group.last().is_some_and(|last| !same_iteration(last, row)));
        if ends {
            round(&mut group);
            for row in group.drain(..) {
                csv.write_record(fields(&row)).map_err(wrote)?;
            }
        }
        let Some(row) = row else { break };
        group.push(row);
    }
    let packer = csv.into_inner().map_err(|e| io()(e.into_error()))?;
    let file = packer.finish().and_then(|file| file.into_inner().map_err(std::io::IntoInnerError::into_error));
    file.and_then(|file| file.sync_all()).map_err(io())
}

fn same_iteration(a: &IterationRow, b: &IterationRow) -> bool {
    let key = |row: &IterationRow| (row.iteration, row.attempt, row.rank);
    a.stage != TOTAL && key(a) == key(b) && a.lane == b.lane
}

/// Whole microseconds, by the rules above.
fn round(group: &mut [IterationRow]) {
    let down = |ns: u64| ns - ns % 1000;
    let begin_ns = group.iter().find(|row| row.stage == TOTAL).or(group.first()).map(|row| row.start_ns);
    let mut sum: u64 = 0;
    for row in group {
        row.start_ns = begin_ns.map_or(0, |ns| ns - ns.rem_euclid(1000));
        row.device_ns = row.device_ns.map(|ns| down(ns.saturating_add(500)));
        let Some(host_ns) = row.host_ns else { continue };
        row.host_ns = Some(if row.stage == TOTAL {
            down(host_ns)
        } else {
            let before = sum;
            sum = sum.saturating_add(host_ns);
            down(sum) - down(before)
        });
    }
}
