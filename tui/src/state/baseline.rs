//! What numbers are compared to: another run's stages, or this one's of a moment ago.

use dflash_reports::stages::{LaneTable, StageRow};

use super::State;
use super::model::Model;

/// Stage tables to compare to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Where they come from.
    pub name: String,
    tables: Vec<LaneTable>,
}

impl Baseline {
    /// The stages of `model`.
    #[must_use]
    pub fn of(model: &Model, name: &str) -> Self {
        let tables = model.lanes.iter().filter_map(|lane| lane.table.clone()).collect();
        Self { name: name.to_owned(), tables }
    }

    /// How much longer a stage's median has become: 0.1 is 10 %. `None` if the baseline does not have the stage.
    #[must_use]
    pub fn change(&self, lane: &LaneTable, row: &StageRow) -> Option<f64> {
        let table = self.table(lane)?;
        let same = |other: &&StageRow| (&other.stage, &other.parent) == (&row.stage, &row.parent);
        grown(row.host.p50_ns, table.rows.iter().find(same)?.host.p50_ns)
    }

    /// How much longer a lane's whole iterations have become.
    #[must_use]
    pub fn total_change(&self, lane: &LaneTable) -> Option<f64> {
        grown(lane.total.p50_ns, self.table(lane)?.total.p50_ns)
    }

    fn table(&self, lane: &LaneTable) -> Option<&LaneTable> {
        let its = |other: &&LaneTable| other.lane == lane.lane && other.rank == lane.rank && other.iterations > 0;
        self.tables.iter().find(its)
    }
}

fn grown(now: u64, before: u64) -> Option<f64> {
    (before > 0).then(|| now as f64 / before as f64 - 1.0)
}

impl State {
    /// Compares, or no longer. Without a baseline, what is shown now becomes it.
    pub(super) fn compare(&mut self) {
        if self.baseline.is_none() {
            self.baseline = Some(Baseline::of(&self.model, "what was shown when b was pressed"));
            self.comparing = true;
        } else {
            self.comparing = !self.comparing;
        }
        let words = match self.compared() {
            Some(baseline) => format!("stages are compared to {}", baseline.name),
            None => "stages are no longer compared".to_owned(),
        };
        self.say(words, false);
    }
}
