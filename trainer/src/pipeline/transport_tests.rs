//! Every way gives the same bits, also while the devices lag behind the host.

use super::*;
use crate::pipeline::streams::Streams;
use dflash_torch::gpu_count;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use tch::Kind;

#[test]
fn every_way_gives_the_same_bits() {
    let tap = |n: i64| Tensor::rand([2, 3, n], (Kind::Float, Device::Cpu));
    let taps = vec![tap(4), tap(2)];
    let want = Tensor::cat(&taps, -1);
    for choice in [Choice::Host, Choice::Peer] {
        for to in [Some(Device::Cpu), None] {
            let one_by_one = taps.iter().map(Tensor::shallow_clone).collect();
            assert_eq!(new(choice, false).send(one_by_one, to).unwrap().tensor(), &want);
            assert_eq!(new(choice, false).send(vec![joined(&taps)], to).unwrap().tensor(), &want);
        }
    }
}

/// Numbers of a batch; 4 MB, so that a copy takes a while.
const SIZE: i64 = 1 << 20;
const BATCHES: i64 = 200;

/// Makes batches of equal numbers late on the device, and frees them at once.
fn produce(choice: Choice, (from, to): (Device, Device), known: bool, batches: &SyncSender<Handoff>) {
    let _streams = Streams::enter(from, &[to]).unwrap();
    let _guard = tch::no_grad_guard();
    let mut transport = new(choice, to.is_cuda());
    let late = Tensor::ones([2048, 2048], (Kind::Float, from));
    for number in 0..BATCHES {
        let zero = (late.mm(&late).mm(&late) - 2048.0f64.powi(2)).sum(Kind::Float);
        let batch = Tensor::full([SIZE], number, (Kind::Float, from)) + zero;
        let sent = transport.send(vec![batch], known.then_some(to)).unwrap();
        // The same memory again, if nobody says that it is in use.
        drop(Tensor::full([SIZE], -1, (Kind::Float, from)));
        batches.send(sent).unwrap();
    }
}

/// Largest difference of what arrived from what was sent.
fn consume(to: Device, batches: &Receiver<Handoff>) -> f64 {
    let _streams = Streams::enter(to, &[]).unwrap();
    let _guard = tch::no_grad_guard();
    let wrong = |(number, sent): (i64, Handoff)| {
        let taps = place(&sent.lend(to).unwrap(), to);
        drop(sent);
        let worst = (&taps - number as f64).abs().max();
        drop(taps);
        drop(Tensor::full([SIZE], -2, (Kind::Float, to)));
        worst
    };
    let worst: Vec<Tensor> = (0..).zip(batches).map(wrong).collect();
    assert_eq!(worst.len(), BATCHES as usize);
    Tensor::stack(&worst, 0).max().double_value(&[])
}

#[test]
fn nothing_is_read_before_it_is_there_or_after_it_is_gone() {
    let gpus = gpu_count();
    if gpus == 0 {
        let told = "SKIPPED nothing_is_read_before_it_is_there_or_after_it_is_gone: it needs a GPU\n";
        // Past the test harness, which hides what a passing test prints; and no stderr is no reason to fail.
        let _ = std::io::stderr().write_all(told.as_bytes());
        return;
    }
    let drafter = Device::Cuda(gpus.min(2) - 1);
    for to in [Device::Cuda(0), drafter, Device::Cpu] {
        for (choice, known) in [(Choice::Host, true), (Choice::Host, false), (Choice::Peer, true)] {
            for depth in [1, 4] {
                let (send, receive) = sync_channel(depth);
                let worst = thread::scope(|scope| {
                    scope.spawn(move || produce(choice, (Device::Cuda(0), to), known, &send));
                    scope.spawn(move || consume(to, &receive)).join().unwrap()
                });
                assert_eq!(worst, 0.0, "{choice:?} to {to:?}, known {known}, depth {depth}");
            }
        }
    }
}
