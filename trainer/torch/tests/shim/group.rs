//! Two members of a group; each would be a process, but c10d's classes do not mind.

use crate::ports::free_port;
use crate::support::whole_libtorch;
use dflash_torch::{Gloo, Member, Rendezvous, Store};
use std::iter;
use std::thread;
use std::time::{Duration, Instant};
use tch::Tensor;

fn rendezvous(server: bool, port: u16, timeout: Duration) -> Rendezvous {
    Rendezvous { host: "127.0.0.1".to_owned(), port, server, prefix: "test/".to_owned(), timeout }
}

#[test]
fn what_one_sets_the_other_gets_and_sums_are_the_same_for_both() {
    whole_libtorch();
    let (port, long) = (free_port(), Duration::from_secs(60));
    let member = |rank: usize| {
        let store = Store::connect(&rendezvous(rank == 0, port, long)).unwrap();
        if rank == 0 {
            store.set("greeting", "hello").unwrap();
        }
        assert_eq!(store.get("greeting").unwrap(), "hello");
        assert!(store.has("greeting").unwrap());
        let member = Member { rank, size: 2, address: "127.0.0.1".to_owned(), timeout: long };
        let mut gloo = Gloo::join(&store, &member).unwrap();
        let mut own = Tensor::from_slice(&[0.1f32, 1e-3]) * (rank as f64 + 1.0);
        for _ in 0..2 {
            gloo.sum(&mut own).unwrap();
        }
        let gaps = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0]).view([2, 2]);
        assert!(gloo.sum(&mut gaps.tr()).unwrap_err().to_string().contains("no gaps"));
        (Vec::<f32>::try_from(&own).unwrap(), store)
    };
    let sums = thread::scope(|scope| {
        let other = scope.spawn(|| member(1).0);
        // The store lives as long as the first member.
        let (own, _store) = member(0);
        [own, other.join().unwrap()]
    });
    assert_eq!(sums[0], sums[1]);
    assert!((sums[0][0] - 0.6).abs() < 1e-6 && (sums[0][1] - 6e-3).abs() < 1e-8, "{sums:?}");
}

#[test]
fn who_is_not_there_is_an_error_and_no_exception() {
    let (port, short) = (free_port(), Duration::from_millis(300));
    let refused = Store::connect(&rendezvous(false, port, short)).unwrap_err().to_string();
    assert!(refused.starts_with("connect to the store: "), "{refused}");
    // With so little time even one's own store may not answer at once.
    let own = || Store::connect(&rendezvous(true, port, short)).ok();
    let began = Instant::now();
    let store =
        iter::repeat_with(own).take_while(|_| began.elapsed() < Duration::from_secs(60)).flatten().next().unwrap();
    let asked = iter::repeat_with(|| store.has("nothing")).take(100).find_map(Result::ok);
    assert_eq!(asked, Some(false));
    assert!(store.get("nothing").unwrap_err().to_string().starts_with("read from the store: "));
    let member = Member { rank: 0, size: 2, address: "127.0.0.1".to_owned(), timeout: short };
    assert!(Gloo::join(&store, &member).unwrap_err().to_string().starts_with("join the process group: "));
    let taken = Store::connect(&rendezvous(true, port, short)).unwrap_err().to_string();
    assert!(taken.starts_with("connect to the store: "), "{taken}");
}
