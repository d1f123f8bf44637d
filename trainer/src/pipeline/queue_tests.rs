//! The queue under threads that come when they like.

use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

#[test]
fn order_is_kept_and_capacity_is_never_exceeded() {
    let queue = BufferedHSQueue::arrival(Room::items(3));
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..1000 {
                assert!(queue.put(i, i, 0).unwrap().items <= 3);
            }
            queue.close();
        });
        let taken: Vec<_> = std::iter::from_fn(|| queue.take(0)).map(|(i, _)| i).collect();
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    });
}

#[test]
fn abandoning_wakes_a_producer_that_waits_for_room() {
    let queue = BufferedHSQueue::arrival(Room::items(1));
    queue.put(0, 1, 0);
    thread::scope(|scope| {
        let producer = scope.spawn(|| queue.put(1, 2, 0));
        thread::sleep(Duration::from_millis(20));
        queue.abandon();
        assert_eq!(producer.join().unwrap(), None);
    });
    assert!(queue.take(0).is_none());
}

#[test]
fn an_item_larger_than_the_bound_passes_alone() {
    let queue = BufferedHSQueue::arrival(Room { items: 4, bytes: 10, largest: 50 });
    assert_eq!(queue.put(0, 'a', 50), Some(Depth { items: 1, bytes: 50 }));
    thread::scope(|scope| {
        let second = scope.spawn(|| queue.put(1, 'b', 1));
        assert_eq!(queue.take(0).unwrap().0, 'a');
        assert_eq!(second.join().unwrap(), Some(Depth { items: 1, bytes: 1 }));
    });
}

/// What a trial is made of.
#[derive(Clone, Debug)]
struct Trial {
    producers: usize,
    takers: usize,
    items: usize,
    rounds: usize,
    delays: Vec<u64>,
    sizes: Vec<u64>,
    bytes: u64,
}

fn trial() -> impl Strategy<Value = Trial> {
    let shape = (1usize..5, 1usize..4, 1usize..6, 1usize..12);
    let lists = (prop::collection::vec(0u64..600, 8), prop::collection::vec(1u64..100, 7), 100u64..300);
    (shape, lists).prop_map(|((producers, takers, items, rounds), (delays, sizes, bytes))| Trial {
        producers,
        takers,
        items,
        rounds,
        delays,
        sizes,
        bytes,
    })
}

/// Producers take numbers in turn and put them after a while; takers work in step. Returns each taker's numbers.
fn run(trial: &Trial) -> Vec<Vec<u64>> {
    let largest = trial.sizes.iter().copied().max().unwrap();
    let queue = BufferedHSQueue::strict(Room { items: trial.items, bytes: trial.bytes, largest }, 0, trial.takers);
    let all = (trial.rounds * trial.takers) as u64;
    let (next, step) = (AtomicU64::new(0), Barrier::new(trial.takers));
    let pause = |n: u64| thread::sleep(Duration::from_micros(trial.delays[n as usize % trial.delays.len()]));
    let put = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= all {
                return;
            }
            pause(number);
            let size = trial.sizes[number as usize % trial.sizes.len()];
            let depth = queue.put(number, number, size).unwrap();
            assert!(depth.items <= trial.items && depth.bytes <= trial.bytes, "{depth:?}");
        }
    };
    let take = |taker: usize| {
        let one = |round: usize| {
            let number = queue.take(taker).unwrap().0;
            pause((taker * 3 + round) as u64);
            step.wait();
            number
        };
        (0..trial.rounds).map(one).collect()
    };
    thread::scope(|scope| {
        for _ in 0..trial.producers {
            scope.spawn(put);
        }
        let start = |taker: usize| {
            let take = &take;
            scope.spawn(move || take(taker))
        };
        let takers: Vec<_> = (0..trial.takers).map(start).collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strict_order_is_kept_within_the_bounds_and_never_gets_stuck(trial in trial()) {
        let (send, receive) = mpsc::channel();
        let own = Arc::new(trial.clone());
        thread::spawn(move || send.send(run(&own)));
        // Milliseconds of work: a minute means that it is stuck.
        let taken = receive.recv_timeout(Duration::from_secs(60)).map_err(|e| TestCaseError::fail(format!("stuck: {e}")))?;
        for (taker, numbers) in taken.iter().enumerate() {
            let own: Vec<u64> = (0..trial.rounds).map(|round| (round * trial.takers + taker) as u64).collect();
            prop_assert_eq!(numbers, &own);
        }
    }
}
