//! Every way gives the same bits, also while the devices lag behind the host.

use super::*;
use crate::pipeline::streams::Streams;
use devices::{GPU, gpus};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use tch::Kind;

#[path = "../../torch/tests/shim/gpus.rs"]
mod devices;

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

/// Every way from one device to another, with the queue short and long.
fn arrives_whole(from: Device, to: Device) {
    for (choice, known) in [(Choice::Host, true), (Choice::Host, false), (Choice::Peer, true)] {
        for depth in [1, 4] {
            let (send, receive) = sync_channel(depth);
            let worst = thread::scope(|scope| {
                scope.spawn(move || produce(choice, (from, to), known, &send));
                scope.spawn(move || consume(to, &receive)).join().unwrap()
            });
            assert_eq!(worst, 0.0, "{choice:?} from {from:?} to {to:?}, known {known}, depth {depth}");
        }
    }
}

#[test]
fn nothing_is_read_before_it_is_there_or_after_it_is_gone() {
    let Some(_alone) = gpus("nothing_is_read_before_it_is_there_or_after_it_is_gone", 1) else { return };
    arrives_whole(GPU, GPU);
    arrives_whole(GPU, Device::Cpu);
}

#[test]
fn between_two_gpus_every_number_arrives() {
    let Some(_alone) = gpus("between_two_gpus_every_number_arrives", 2) else { return };
    arrives_whole(GPU, Device::Cuda(1));
    arrives_whole(Device::Cuda(1), GPU);
}
