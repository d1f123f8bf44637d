//! Streams of a GPU.

use crate::support::{GPU, current, gpus, multiply};
use dflash_torch::{Event, Priority, Stream, TorchError};

#[test]
fn a_pool_stream_becomes_current_and_goes_again() {
    let Some(_gpus) = gpus("a_pool_stream_becomes_current_and_goes_again", 1) else { return };
    let before = current();
    for priority in [Priority::Normal, Priority::High] {
        let stream = Stream::from_pool(GPU, priority).unwrap();
        assert_eq!(stream.device(), GPU);
        assert_ne!(stream.id(), before.id());
        let guard = stream.enter().unwrap();
        assert_eq!(current(), stream);
        // A current stream is its thread's own.
        let elsewhere = std::thread::spawn(current).join().unwrap();
        assert_eq!(elsewhere.id(), 0);
        drop(guard);
        assert_eq!(current(), before);
    }
}

#[test]
fn work_is_pending_until_it_is_done() {
    let Some(_gpus) = gpus("work_is_pending_until_it_is_done", 1) else { return };
    let stream = Stream::from_pool(GPU, Priority::Normal).unwrap();
    let _guard = stream.enter().unwrap();
    let _product = multiply(GPU, 200);
    assert!(!stream.query().unwrap(), "200 products are done at once");
    stream.synchronize().unwrap();
    assert!(stream.query().unwrap());
}

#[test]
fn a_stream_waits_for_another_ones_event() {
    let Some(_gpus) = gpus("a_stream_waits_for_another_ones_event", 1) else { return };
    let busy = Stream::from_pool(GPU, Priority::Normal).unwrap();
    let waiting = Stream::from_pool(GPU, Priority::Normal).unwrap();
    let mut worked = Event::timed(GPU).unwrap();
    assert_eq!(waiting.wait(&worked), Err(TorchError::NotRecorded));
    {
        let _guard = busy.enter().unwrap();
        let _product = multiply(GPU, 200);
        worked.record(&busy).unwrap();
    }
    waiting.wait(&worked).unwrap();
    let mut after = Event::timed(GPU).unwrap();
    after.record(&waiting).unwrap();
    after.synchronize().unwrap();
    assert!(worked.query().unwrap());
    assert!(worked.elapsed_ns(&after).unwrap() >= 0);
}
