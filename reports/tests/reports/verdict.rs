//! The sentence that says which side limits.

use crate::support::{Builder, small_run};
use dflash_reports::stages::{Window, stage_table};
use dflash_reports::timeline::record::Kind;
use dflash_reports::verdict::verdict;

/// Lanes with the percentages of their time spent in wait and put.
fn sentence(lanes: &[(&str, u64, u64)]) -> String {
    let mut b = Builder::new();
    for (lane, wait, put) in lanes {
        let role = lane.split(':').next().unwrap();
        b = b.lane(lane).iteration(Kind::Train, 100 - wait - put, |b| {
            b.span(&format!("{role}.wait"), *wait).span(&format!("{role}.put"), *put);
        });
    }
    verdict(&stage_table(&b.timeline, &Window::default())).to_string()
}

#[test]
fn the_busy_side_limits_those_that_wait_for_it() {
    let text = sentence(&[("loader", 0, 80), ("target:0", 0, 30), ("target:1", 0, 32), ("drafter:0", 2, 0)]);
    assert_eq!(text, "drafter:0 limits: targets wait 31 % of the time for room");
    let text = sentence(&[("target:0", 0, 30), ("target:1", 0, 32), ("drafter:0", 2, 0)]);
    assert_eq!(text, "drafter:0 limits: targets wait 31 % of the time for room");
    let text = sentence(&[("target:0", 1, 0), ("target:1", 1, 0), ("drafter:0", 40, 0)]);
    assert_eq!(text, "targets limit: drafter:0 waits 40 % of the time for input");
    let text = sentence(&[("loader", 0, 0), ("target:0", 50, 0), ("drafter:0", 60, 0)]);
    assert_eq!(text, "loader limits: target:0 waits 50 % of the time for input");
}

#[test]
fn it_does_not_claim_what_it_cannot_know() {
    let text = sentence(&[("target:0", 1, 1), ("drafter:0", 2, 0)]);
    assert_eq!(text, "no side limits: drafter:0 waits 2 % of the time for input, the others less");
    let text = sentence(&[("target:0", 0, 40), ("drafter:0", 30, 0)]);
    assert!(text.starts_with("no side limits throughout: drafter:0 waits 30 %"), "{text}");
    assert!(sentence(&[("drafter:0", 90, 0)]).starts_with("which side limits is unknown"));
    assert!(sentence(&[]).starts_with("which side limits is unknown"));
}

#[test]
fn of_the_small_run() {
    let verdict = verdict(&stage_table(&small_run(), &Window::default()));
    assert_eq!(verdict.to_string(), "drafter:0 limits: target:0 waits 33 % of the time for room");
}
