//! The caching allocator's counters.

use crate::support::{GPU, gpus};
use dflash_torch::CachingAllocator;
use tch::{Kind, Tensor};

#[test]
fn a_fresh_allocation_moves_the_counters() {
    let Some(_gpus) = gpus("a_fresh_allocation_moves_the_counters", 1) else { return };
    let allocator = CachingAllocator::of(GPU).unwrap();
    let before = allocator.counters().unwrap();
    // More than other tests hold at the same time, and never asked for before: the cache cannot have it.
    let bytes = 3 << 30;
    let tensor = Tensor::zeros([bytes], (Kind::Uint8, GPU));
    let during = allocator.counters().unwrap();
    assert!(during.allocations > before.allocations);
    assert!(during.device_allocations > before.device_allocations);
    assert!(during.reserved_bytes >= bytes.cast_unsigned());
    assert!(during.active_bytes >= bytes.cast_unsigned());
    assert!(during.reserved_bytes >= during.active_bytes);
    assert_eq!((during.retries, during.out_of_memory), (before.retries, before.out_of_memory));
    drop(tensor);
    let after = allocator.counters().unwrap();
    assert!(after.reserved_bytes >= bytes.cast_unsigned(), "what is freed stays in the cache");
    assert!(after.active_bytes + bytes.cast_unsigned() / 2 < during.active_bytes);
    assert!(after.allocations >= during.allocations, "counters do not go back");
}
