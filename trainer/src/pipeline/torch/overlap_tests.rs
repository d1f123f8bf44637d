//! Buckets go while the pass goes on, and all of them in one order.

use super::*;
use crate::pipeline::collective::Leave;
use std::sync::Condvar;
use std::time::Duration;
use tch::Kind;

/// Two members of which the other one always has as much: sums are twice what is given. Keeps the sizes of what it adds up.
#[derive(Default)]
struct Twice {
    sizes: Arc<(Mutex<Vec<usize>>, Condvar)>,
    ends_at: Option<usize>,
    /// Memory runs out at this sum.
    full_at: Option<usize>,
}

impl Collective for Twice {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        2
    }

    fn sum_numbers(&mut self, values: &mut [f64]) -> Result<(), Ended> {
        values.iter_mut().for_each(|value| *value *= 2.0);
        Ok(())
    }

    fn sum(&mut self, tensors: &mut [Tensor]) -> Result<(), Ended> {
        let mut sizes = self.sizes.0.lock().unwrap();
        if self.ends_at == Some(sizes.len()) {
            return Err(Ended::Left("drafter:1".to_owned()));
        }
        assert_ne!(self.full_at, Some(sizes.len()), "CUDA out of memory\\nException raised from malloc");
        sizes.push(tensors.iter().map(Tensor::numel).sum());
        tensors.iter_mut().for_each(|tensor| *tensor = &*tensor * 2.0);
        self.sizes.1.notify_all();
        Ok(())
    }

    fn leave(&mut self, _: Leave) {}
}

/// Weights of 1, 2, 3, 4 numbers, each of its own number.
fn weights() -> Vec<Tensor> {
    let weight = |n: i64| Tensor::full([n], n as f64, (Kind::Float, Device::Cpu)).set_requires_grad(true);
    (1..5).map(weight).collect()
}

fn overlap(weights: &[Tensor]) -> Overlap {
    // Each weight is a bucket of its own.
    Overlap::in_buckets(weights.iter().map(Tensor::shallow_clone).collect(), &[Device::Cpu], 1).unwrap()
}

fn numbers(tensors: &[Tensor]) -> Vec<f64> {
    tensors.iter().map(|tensor| tensor.double_value(&[0])).collect()
}

#[test]
fn what_is_complete_is_added_up_before_the_pass_has_ended() {
    let weights = weights();
    let overlap = overlap(&weights);
    let mut group = Twice::default();
    let sizes = Arc::clone(&group.sizes);
    let (_, reduced) = overlap
        .run(&mut group, None, |weigh| {
            weigh(3.0, None);
            // The third one first: it waits for the last one, which goes before it.
            (&weights[2] * 5.0).sum(Kind::Float).backward();
            (&weights[3] * 7.0).sum(Kind::Float).backward();
            let seen = sizes.0.lock().unwrap();
            let (seen, late) =
                sizes.1.wait_timeout_while(seen, Duration::from_secs(60), |sizes| sizes.len() < 2).unwrap();
            assert!(!late.timed_out() && *seen == [4, 3], "{seen:?}");
            drop(seen);
            (&weights[0] * 11.0).sum(Kind::Float).backward();
            Ok(())
        })
        .unwrap();
    // The mean of two equal ones, in the weights' order; the second weight had no gradient.
    assert_eq!(numbers(&reduced.unwrap()), [11.0, 0.0, 5.0, 7.0]);
    assert_eq!(*sizes.0.lock().unwrap(), [4, 3, 2, 1]);
}

#[test]
fn who_has_no_rows_takes_part_with_no_weight() {
    let weights = weights();
    let mut group = Twice::default();
    let (made, reduced) = overlap(&weights).run(&mut group, None, |_| Ok("nothing")).unwrap();
    assert_eq!((made, numbers(&reduced.unwrap())), ("nothing", vec![0.0; 4]));
    assert_eq!(*group.sizes.0.lock().unwrap(), [4, 3, 2, 1]);
}

#[test]
fn an_end_of_either_side_is_told_and_none_waits() {
    let weights = weights();
    let overlap = overlap(&weights);
    let mut group = Twice { ends_at: Some(1), ..Twice::default() };
    let pass = |weigh: Weigh<'_>| {
        weigh(1.0, None);
        weights.iter().for_each(|weight| (weight * 2.0).sum(Kind::Float).backward());
        Ok(())
    };
    let ((), reduced) = overlap.run(&mut group, None, pass).unwrap();
    assert_eq!(reduced.err(), Some(Ended::Left("drafter:1".to_owned())));
    let failed = overlap.run::<()>(&mut Twice::default(), None, |_| Err("it is full".to_owned()));
    assert_eq!(failed.err().as_deref(), Some("it is full"));
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = overlap.run::<()>(&mut Twice::default(), None, |_| panic!("planted"));
    }));
    assert!(died.is_err());
    // And it is as good as new.
    weights.iter().for_each(|weight| weight.shallow_clone().zero_grad());
    let ((), reduced) = overlap.run(&mut Twice::default(), None, pass).unwrap();
    assert_eq!(numbers(&reduced.unwrap()), [2.0; 4]);
}

/// The thread that adds up is on no lane: what it panicked at was not named.
#[test]
fn memory_that_runs_out_while_adding_up_names_the_stage() {
    let weights = weights();
    let mut group = Twice { full_at: Some(1), ..Twice::default() };
    let full = overlap(&weights).run::<()>(&mut group, None, |weigh| {
        weigh(1.0, None);
        weights.iter().for_each(|weight| (weight * 2.0).sum(Kind::Float).backward());
        Ok(())
    });
    let cause = full.err().unwrap();
    assert!(cause.contains("CUDA out of memory, in drafter.reduce; lower [train] batch"), "{cause}");
}
