//! Which positions may be anchors, against every trainer's rule.

use super::Report;
use crate::support::{data, ids, json};
use dflash_trainer::config::AnchorRule;
use dflash_trainer::drafter::{Row, anchors};

#[test]
fn parity_anchors() {
    let mut report = Report::new("drafter");
    let cases = json(data("drafter/anchors.json"));
    // Each rule, and whether it knows where documents end.
    let rules = [
        ("two_supervised", AnchorRule::TwoSupervised, false),
        ("two_supervised_in_document", AnchorRule::TwoSupervised, true),
        ("whole_block", AnchorRule::WholeBlock, false),
        ("whole_block_in_document", AnchorRule::WholeBlock, true),
        ("before_last_block", AnchorRule::BeforeLastBlock, false),
    ];
    let mut line = report.line("anchors");
    for (name, rule, knows) in rules {
        let differ = cases.as_array().unwrap().iter().filter(|case| {
            let mask: Vec<bool> = ids(&case["loss_mask"]).iter().map(|&m| m > 0).collect();
            let lengths = ids(&case["document_lengths"]);
            let documents: Vec<i64> =
                (0..).zip(&lengths).flat_map(|(d, &n)| std::iter::repeat_n(d, n as usize)).collect();
            let documents: Vec<i64> = documents.into_iter().chain(std::iter::repeat(-1)).take(mask.len()).collect();
            let tokens = vec![0; mask.len()];
            let documents = knows.then_some(&documents[..]);
            let row = Row { ids: &tokens, loss_mask: &mask, documents, positions: None };
            let block = case["block_size"].as_u64().unwrap() as usize;
            let valid: Vec<i64> = anchors::valid(&row, rule, block).into_iter().map(|a| a as i64).collect();
            valid != ids(&case["valid"][name])
        });
        line.check(name, f64::from(differ.count() as u32), 0.0);
    }
    drop(line);
    report.finish();
}
