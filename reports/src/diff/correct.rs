//! Many tests at once: p-values made comparable with alpha, whatever their number.

use serde::Serialize;

/// How p-values are corrected for the number of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Correction {
    /// Holm: alpha bounds the probability of a single false alarm in the whole comparison.
    #[default]
    Holm,
    /// Benjamini and Hochberg: alpha bounds the expected share of false ones among the alarms. Sees more, errs more.
    Bh,
}

impl Correction {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holm => "holm",
            Self::Bh => "bh",
        }
    }

    /// Corrected p-values, in the order given.
    pub(super) fn apply(self, p: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..p.len()).collect();
        order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
        let mut adjusted = vec![1.0; p.len()];
        let count = p.len();
        match self {
            Self::Holm => {
                let mut least: f64 = 0.0;
                for (rank, &i) in order.iter().enumerate() {
                    least = least.max((p[i] * (count - rank) as f64).min(1.0));
                    adjusted[i] = least;
                }
            }
            Self::Bh => {
                let mut most: f64 = 1.0;
                for (rank, &i) in order.iter().enumerate().rev() {
                    most = most.min(p[i] * count as f64 / (rank + 1) as f64);
                    adjusted[i] = most;
                }
            }
        }
        adjusted
    }
}

#[cfg(test)]
mod tests {
    use super::Correction;
    use proptest::prelude::*;

    fn close(found: &[f64], expected: &[f64]) {
        assert!(found.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-12), "{found:?}");
        assert_eq!(found.len(), expected.len());
    }

    #[test]
    fn by_hand() {
        close(&Correction::Holm.apply(&[0.01, 0.04, 0.03]), &[0.03, 0.06, 0.06]);
        close(&Correction::Holm.apply(&[0.9, 0.8]), &[1.0, 1.0]);
        close(&Correction::Bh.apply(&[0.01, 0.04, 0.03, 0.5]), &[0.04, 0.16 / 3.0, 0.16 / 3.0, 0.5]);
        close(&Correction::Holm.apply(&[]), &[]);
    }

    proptest! {
        #[test]
        fn a_correction_keeps_order_and_lies_between_none_and_bonferroni(
            p in proptest::collection::vec(0.0_f64..=1.0, 1..40)
        ) {
            let (holm, bh) = (Correction::Holm.apply(&p), Correction::Bh.apply(&p));
            for i in 0..p.len() {
                prop_assert!(p[i] <= bh[i] + 1e-12 && bh[i] <= holm[i] + 1e-12);
                prop_assert!(holm[i] <= (p[i] * p.len() as f64).min(1.0) + 1e-12);
                for j in 0..p.len() {
                    prop_assert!(p[i] > p[j] || holm[i] <= holm[j] && bh[i] <= bh[j]);
                }
            }
        }
    }
}
