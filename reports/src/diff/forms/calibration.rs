//! What splitting a run against itself showed, in its forms.

use crate::diff::Calibration;
use crate::error::Result;
use crate::text::harmless;
use std::fmt::Write as _;

impl Calibration {
    /// Whether the run is such that alarms may be false more often than alpha says.
    #[must_use]
    pub fn cries_wolf(&self) -> bool {
        self.false_alarm_rate > self.options.alpha
    }

    /// For people.
    #[must_use]
    pub fn table(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let share = |count: usize| percent(count as f64 / self.splits.max(1) as f64);
        let mut text = format!(
            "false-alarm rate {} ({} of {} splits of {} against itself call a stage regressed; with 95 % confidence \
             below {})\n",
            percent(self.false_alarm_rate),
            self.regressed,
            self.splits,
            harmless(&self.run),
            percent(self.false_alarm_rate_below)
        );
        let _ = writeln!(text, "called improved: {}; would exit with 1: {}", share(self.improved), share(self.red));
        let _ = writeln!(text, "sure about every stage (nothing inconclusive): {}", share(self.conclusive));
        let _ = writeln!(text, "first half against second: {}", self.halves_say);
        for (stage, count) in self.alarms.iter().take(10) {
            let _ = writeln!(text, "  {count} times: {stage}");
        }
        let _ = writeln!(text, "{}", self.options.line(self.tests));
        text
    }

    /// As one JSON object.
    ///
    /// # Errors
    /// If serialising fails.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// As one row of CSV under its header.
    #[must_use]
    pub fn csv(&self) -> String {
        format!(
            "splits,tests,regressed,improved,red,conclusive,false_alarm_rate,false_alarm_rate_below\n\
             {},{},{},{},{},{},{:.6},{:.6}\n",
            self.splits,
            self.tests,
            self.regressed,
            self.improved,
            self.red,
            self.conclusive,
            self.false_alarm_rate,
            self.false_alarm_rate_below
        )
    }

    /// As a Markdown list.
    #[must_use]
    pub fn markdown(&self) -> String {
        self.table().lines().map(|line| format!("- {}\n", crate::report::escaped(line.trim()))).collect()
    }
}
