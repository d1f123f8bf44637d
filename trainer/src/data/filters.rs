//! Which samples can train a drafter.

use super::Sample;

/// What a sample must have, and how long it may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// At least so many pairs of neighbouring supervised tokens. An anchor needs one: itself and a token to predict.
    /// Default 1.
    pub min_supervised_pairs: usize,
    /// At least so many supervised tokens. Default 0; trainers that want whole blocks ask for two block sizes.
    pub min_loss_tokens: usize,
    /// Longer samples are cut here, before the other two rules look. Default: no limit.
    pub max_length: Option<usize>,
}

impl Default for Filter {
    fn default() -> Self {
        Self { min_supervised_pairs: 1, min_loss_tokens: 0, max_length: None }
    }
}

/// What a filter did: `kept + no_pair + too_short` is the number of samples it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilterReport {
    /// Samples that came through.
    pub kept: usize,
    /// Dropped: fewer than `min_loss_tokens` supervised tokens.
    pub too_short: usize,
    /// Dropped: fewer than `min_supervised_pairs` pairs.
    pub no_pair: usize,
    /// Of those kept, how many were cut at `max_length`.
    pub truncated: usize,
}

impl std::fmt::Display for FilterReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kept, too_short, no_pair, truncated } = self;
        write!(f, "{kept} kept ({truncated} of them cut), dropped: {no_pair} without a supervised pair, ")?;
        write!(f, "{too_short} with too few supervised tokens")
    }
}

impl Filter {
    /// The samples that pass, in their order, and what happened to the others.
    pub fn apply(&self, samples: Vec<Sample>) -> (Vec<Sample>, FilterReport) {
        let mut report = FilterReport::default();
        let kept = samples.into_iter().filter_map(|sample| self.pass(sample, &mut report)).collect();
        (kept, report)
    }

    fn pass(&self, mut sample: Sample, report: &mut FilterReport) -> Option<Sample> {
        let limit = self.max_length.unwrap_or(usize::MAX);
        let cut = sample.ids.len() > limit;
        sample.ids.truncate(limit);
        sample.loss_mask.truncate(limit);
        if supervised_pairs(&sample.loss_mask) < self.min_supervised_pairs {
            report.no_pair += 1;
            return None;
        }
        if sample.supervised() < self.min_loss_tokens {
            report.too_short += 1;
            return None;
        }
        report.kept += 1;
        report.truncated += usize::from(cut);
        Some(sample)
    }
}

fn supervised_pairs(mask: &[bool]) -> usize {
    mask.windows(2).filter(|pair| pair[0] && pair[1]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(mask: &str) -> Sample {
        let loss_mask: Vec<bool> = mask.chars().map(|c| c == '1').collect();
        Sample { id: mask.into(), ids: (0..loss_mask.len() as u32).collect(), loss_mask }
    }

    fn filtered(filter: &Filter, masks: &[&str]) -> (Vec<String>, FilterReport) {
        let (kept, report) = filter.apply(masks.iter().map(|mask| sample(mask)).collect());
        assert_eq!(report.kept, kept.len());
        assert_eq!(report.kept + report.no_pair + report.too_short, masks.len());
        (kept.into_iter().map(|s| s.id).collect(), report)
    }

    #[test]
    fn a_supervised_pair_is_needed_by_default() {
        let (kept, report) = filtered(&Filter::default(), &["0000", "0101", "0110", "", "1"]);
        assert_eq!(kept, ["0110"]);
        assert_eq!(report.no_pair, 4);
    }

    #[test]
    fn too_few_loss_tokens_are_dropped() {
        let filter = Filter { min_loss_tokens: 3, ..Filter::default() };
        let (kept, report) = filtered(&filter, &["0110", "0111"]);
        assert_eq!((kept, report.too_short), (vec!["0111".to_owned()], 1));
    }

    #[test]
    fn long_samples_are_cut_before_the_other_rules_look() {
        let filter = Filter { max_length: Some(3), ..Filter::default() };
        let (kept, report) = filter.apply(vec![sample("0111"), sample("0011"), sample("011")]);
        assert_eq!(report, FilterReport { kept: 2, too_short: 0, no_pair: 1, truncated: 1 });
        assert!(kept.iter().all(|s| s.ids.len() == 3 && s.loss_mask.len() == 3));
        assert_eq!(
            report.to_string(),
            "2 kept (1 of them cut), dropped: 1 without a supervised pair, 0 with too few supervised tokens"
        );
    }

    #[test]
    fn two_pairs_may_be_asked_for() {
        let filter = Filter { min_supervised_pairs: 2, ..Filter::default() };
        assert_eq!(filtered(&filter, &["110", "11011", "111", "1011011"]).0, ["11011", "111", "1011011"]);
    }
}
