//! Sums, means, and members that go.

use super::*;
use std::thread;
use tch::Kind;

fn group(size: usize) -> Vec<Threads> {
    Threads::group(&(0..size).map(|i| format!("drafter:{i}")).collect::<Vec<_>>())
}

/// What each member of a group returns.
fn all<T: Send>(size: usize, work: impl Fn(Threads) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let members: Vec<_> = group(size).into_iter().map(|member| scope.spawn(move || work(member))).collect();
        members.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

fn values(tensor: &Tensor) -> Vec<f64> {
    Vec::<f64>::try_from(tensor.to_kind(Kind::Double)).unwrap()
}

#[test]
fn every_member_gets_the_same_bits() {
    for size in 1..5 {
        let sums = all(size, |mut member| {
            let own = |i: usize| Tensor::from_slice(&[0.1f32 * (member.rank() + i) as f32, 1e-3]);
            let mut tensors: Vec<_> = (0..7).map(own).collect();
            for _ in 0..3 {
                member.sum(&mut tensors).unwrap();
            }
            let mut number = [member.rank() as f64];
            member.sum_numbers(&mut number).unwrap();
            (tensors.iter().map(values).collect::<Vec<_>>(), number[0])
        });
        assert!(sums.iter().all(|sum| sum == &sums[0]), "{sums:?}");
        let sum = (0..size).map(|rank| rank as f64).sum::<f64>();
        assert_eq!(sums[0].1, sum);
        let expected = 0.1 * sum * (size * size) as f64;
        assert!((sums[0].0[0][0] - expected).abs() < 1e-5 * expected.max(1.0));
    }
}

#[test]
fn a_mean_is_weighted_whatever_the_kind() {
    for kind in [Kind::Float, Kind::BFloat16] {
        let means = all(2, |mut member| {
            let (value, weight) = if member.rank() == 0 { (1.0, 3.0) } else { (5.0, 1.0) };
            let mut own = [Tensor::from_slice(&[value, -value]).to_kind(kind)];
            member.mean(&mut own, weight).unwrap();
            values(&own[0])
        });
        assert_eq!(means, [[2.0, -2.0], [2.0, -2.0]]);
    }
    let none = all(2, |mut member| {
        let mut own = [Tensor::from_slice(&[7.0f32])];
        member.mean(&mut own, 0.0).unwrap();
        values(&own[0])
    });
    assert_eq!(none, [[0.0], [0.0]]);
}

#[test]
fn one_that_goes_ends_the_others_calls_with_its_name() {
    let ended = all(3, |mut member| {
        member.sum_numbers(&mut [1.0]).unwrap();
        if member.rank() == 1 {
            return None;
        }
        member.sum_numbers(&mut [1.0]).err()
    });
    let left = Some(Ended::Left("drafter:1".into()));
    assert_eq!(ended, [left.clone(), None, left]);
}

#[test]
fn one_that_panics_has_failed() {
    let mut members = group(2);
    let (dying, mut other) = (members.pop().unwrap(), members.pop().unwrap());
    let died = thread::spawn(move || {
        let _member = dying;
        panic!("planted");
    });
    assert_eq!(other.sum_numbers(&mut [1.0]), Err(Ended::Failed("drafter:1".into())));
    assert!(died.join().is_err());
}
