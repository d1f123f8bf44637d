//! NCCL: refused by name where it is not there; with GPUs, sums of one and of two of them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::gpus::gpus;
use dflash_torch::{Nccl, NcclId, Priority, Stream};
use std::thread;
use std::time::{Duration, Instant};
use tch::{Device, Kind, Tensor};

#[test]
fn without_the_library_its_name_and_the_way_out_are_told() {
    match Nccl::why_not() {
        None => eprintln!("SKIPPED without_the_library_its_name_and_the_way_out_are_told: it is there"),
        Some(why) => {
            assert!(why.contains("libnccl.so.2") && why.contains("scripts/libtorch --cuda"), "{why}");
            assert!(NcclId::new().is_err());
        }
    }
}

#[test]
fn an_id_can_be_told_as_bytes() {
    let bytes: Vec<u8> = (0..128).map(|i| i * 2).collect();
    assert_eq!(NcclId::from_bytes(&bytes).map(|id| id.bytes()), Some(bytes));
    assert!(NcclId::from_bytes(&[1, 2]).is_none());
}

/// What each of `size` GPUs has after two sums.
fn sums(size: usize) -> Vec<Vec<f32>> {
    let id = NcclId::new().unwrap();
    let member = |rank: usize| {
        let device = Device::Cuda(rank);
        let mut nccl = Nccl::join(id, rank, size, device, &|| false).unwrap();
        // On a stream of its own, as a lane has it.
        let _on = Stream::from_pool(device, Priority::Normal).unwrap().enter().unwrap();
        let mut tensor = Tensor::full([1000], rank as f64 + 0.5, (Kind::Float, device));
        for _ in 0..2 {
            nccl.sum(&mut tensor, &|| false).unwrap();
        }
        assert!(nccl.sum(&mut Tensor::zeros([2], (Kind::Float, Device::Cpu)), &|| false).is_err());
        assert!(nccl.sum(&mut Tensor::zeros([2], (Kind::Int64, device)), &|| false).is_err());
        Vec::<f32>::try_from(tensor.to_device(Device::Cpu)).unwrap()
    };
    thread::scope(|scope| {
        let member = &member;
        let members: Vec<_> = (0..size).map(|rank| scope.spawn(move || member(rank))).collect();
        members.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

#[test]
fn one_gpu_sums_with_itself() {
    let Some(_alone) = gpus("one_gpu_sums_with_itself", 1) else { return };
    assert_eq!(sums(1), [vec![0.5; 1000]]);
}

#[test]
fn two_gpus_sum_to_the_same_bits() {
    let Some(_alone) = gpus("two_gpus_sum_to_the_same_bits", 2) else { return };
    // 0.5 + 1.5, and then that twice.
    assert_eq!(sums(2), [vec![4.0; 1000], vec![4.0; 1000]]);
}

/// A member that waits for one which never comes is told so after a moment, and ends by it.
fn gives_up(work: impl FnOnce(&dyn Fn() -> bool) -> dflash_torch::Result<()>) {
    let began = Instant::now();
    let error = work(&|| began.elapsed() > Duration::from_millis(300)).unwrap_err().to_string();
    assert!(error.contains("a member is gone"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
}

#[test]
fn who_waits_for_one_that_never_joins_can_give_up() {
    let Some(_alone) = gpus("who_waits_for_one_that_never_joins_can_give_up", 1) else { return };
    let id = NcclId::new().unwrap();
    gives_up(|gone| Nccl::join(id, 0, 2, Device::Cuda(0), gone).map(drop));
    // The device is none the worse for it.
    assert_eq!(sums(1), [vec![0.5; 1000]]);
}

#[test]
fn a_sum_that_one_never_makes_can_be_given_up() {
    let Some(_alone) = gpus("a_sum_that_one_never_makes_can_be_given_up", 2) else { return };
    let id = NcclId::new().unwrap();
    let join = |rank| Nccl::join(id, rank, 2, Device::Cuda(rank), &|| false).unwrap();
    thread::scope(|scope| {
        let idle = scope.spawn(move || join(1));
        let mut own = join(0);
        let idle = idle.join().unwrap();
        let mut tensor = Tensor::ones([1 << 20], (Kind::Float, Device::Cuda(0)));
        gives_up(|gone| own.sum(&mut tensor, gone));
        assert!(own.sum(&mut tensor, &|| false).unwrap_err().to_string().contains("a member is gone"));
        drop(idle);
    });
    assert_eq!(sums(2), [vec![4.0; 1000], vec![4.0; 1000]]);
}
