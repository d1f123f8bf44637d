//! The same bits, whatever the number of targets and the way of their results.

use crate::support::{config, never_stuck, train, worst};
use dflash_trainer::config::{
    AsyncPostprocess, Config, Delivery, FeatureCache, Synchronisation, Transport, Vocabulary,
};

#[test]
fn one_two_and_three_targets_teach_the_same_bits() {
    for cache in [FeatureCache::Off, FeatureCache::Memory] {
        let results = never_stuck(move || {
            let mut config = config();
            config.pipeline.feature_cache = cache;
            [1, 2, 3].map(|targets| train(&config, targets, 1))
        });
        let [one, rest @ ..] = results;
        assert_eq!(one.steps, 7);
        for (i, other) in rest.iter().enumerate() {
            assert_eq!(worst(&one, other), 0.0, "{} targets, cache {cache:?}", i + 2);
            assert_eq!(one.losses, other.losses);
        }
        assert_eq!(rest[1].lanes, ["drafter:0", "loader", "target:0", "target:1", "target:2"]);
    }
}

/// What a switch of the pipeline's changes besides the results.
fn switched(change: impl Fn(&mut Config) + Send + 'static) -> (f64, Vec<String>) {
    never_stuck(move || {
        let plain = train(&config(), 1, 1);
        let mut config = config();
        change(&mut config);
        let other = train(&config, 2, 1);
        (worst(&plain, &other), other.lanes)
    })
}

#[test]
fn the_pipelines_switches_change_no_bit() {
    let (difference, lanes) = switched(|c| c.pipeline.async_postprocess = AsyncPostprocess::On);
    assert_eq!((difference, &lanes[2..4]), (0.0, &["post:0".to_owned(), "post:1".to_owned()][..]));
    assert_eq!(switched(|c| c.pipeline.synchronisation = Synchronisation::PerItem).0, 0.0);
    assert_eq!(switched(|c| c.pipeline.transport = Transport::Peer).0, 0.0);
    assert_eq!(switched(|c| (c.pipeline.batch_queue, c.pipeline.hs_queue) = (1, 1)).0, 0.0);
    let all = |c: &mut Config| {
        c.pipeline.async_postprocess = AsyncPostprocess::On;
        c.pipeline.feature_cache = FeatureCache::Off;
        c.pipeline.synchronisation = Synchronisation::PerItem;
        c.pipeline.hs_queue_bytes = "1 MB".to_owned();
    };
    assert_eq!(switched(all).0, 0.0);
}

#[test]
fn anchors_of_any_shape_teach_the_same() {
    let (difference, _) = switched(|c| c.train.fixed_anchors = false);
    assert!(difference < 1e-5, "{difference}");
}

#[test]
fn another_order_of_arrival_teaches_too() {
    let trained = never_stuck(|| {
        let mut config = config();
        config.pipeline.order = Delivery::Arrival;
        config.train.vocabulary = Vocabulary::Candidates;
        train(&config, 3, 2)
    });
    assert_eq!(trained.steps, 7);
    assert!(trained.losses.iter().all(|loss| loss.is_finite()) && trained.losses.len() == 3, "{:?}", trained.losses);
}
