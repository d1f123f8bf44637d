//! `make parity`: every folder of the fixtures, one line a family and case, each error beside its tolerance.
//!
//! Tolerances are those of the fixtures' READMEs; 0 = exact.
#![expect(clippy::print_stdout, reason = "the lines are what `make parity` is for")]

mod anchors;
mod decode;
mod drafter;
mod export;
mod gradients;
mod optim;
mod targets;
mod text;

use crate::support::data;
use std::fmt::Write as _;

/// The lines of a family.
pub struct Report {
    family: &'static str,
    text: String,
    failed: Vec<String>,
}

/// One case's line.
pub struct Line<'a> {
    report: &'a mut Report,
    case: String,
    text: String,
    fine: bool,
}

impl Report {
    pub fn new(family: &'static str) -> Self {
        Self { family, text: String::new(), failed: Vec::new() }
    }

    pub fn line(&mut self, case: impl Into<String>) -> Line<'_> {
        Line { report: self, case: case.into(), text: String::new(), fine: true }
    }

    /// Prints the lines, and panics if one is beyond.
    pub fn finish(self) {
        println!("\n{}", self.text.trim_end());
        assert!(self.failed.is_empty(), "beyond tolerance: {}", self.failed.join(", "));
    }
}

impl Line<'_> {
    /// A measured error and what it may be.
    pub fn check(&mut self, what: &str, error: f64, tolerance: f64) -> &mut Self {
        let good = error <= tolerance;
        self.fine &= good;
        let sign = if good { "≤" } else { "> !" };
        let _ = match tolerance {
            0.0 => write!(self.text, "  {what} {error:.0} {sign} 0"),
            _ => write!(self.text, "  {what} {error:.1e} {sign} {tolerance:.0e}"),
        };
        self
    }

    /// Something that must be equal: counted as one difference if not.
    pub fn same<T: PartialEq>(&mut self, what: &str, got: T, want: T) -> &mut Self {
        self.check(what, f64::from(u8::from(got != want)), 0.0)
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let name = format!("{}/{}", self.report.family, self.case);
        let word = if self.fine { "ok  " } else { "FAIL" };
        let _ = writeln!(self.report.text, "{word} {name:<44}{}", self.text);
        if !self.fine {
            self.report.failed.push(name);
        }
    }
}

/// A folder that nobody compares proves nothing.
#[test]
fn parity_uses_every_folder_of_the_fixtures() {
    let folders = |family: &str| {
        let entries = std::fs::read_dir(data(family)).unwrap().map(|e| e.unwrap());
        let mut names: Vec<_> =
            entries.filter(|e| e.file_type().unwrap().is_dir()).map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let sorted = |names: &[&str]| {
        let mut names: Vec<_> = names.iter().map(|n| (*n).to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(folders("drafter"), sorted(&crate::case::CASES));
    assert_eq!(folders("targets"), sorted(&targets::FAMILIES));
    assert_eq!(folders("decode"), sorted(&decode::CASES));
    let families: Vec<_> = folders("").into_iter().filter(|f| f != "recordings").collect();
    assert_eq!(families, ["decode", "drafter", "export", "optim", "targets", "text"]);
    let runs = std::fs::read_dir(data("optim"))
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".final.safetensors"));
    assert_eq!(runs.count(), optim::RUNS.len());
}
