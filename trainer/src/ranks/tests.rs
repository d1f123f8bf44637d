//! Ranks of one process: each would be one, but they do not mind. Real processes: tests/training/ranks.rs of the command.

mod ends;
#[path = "../../torch/tests/shim/ports.rs"]
pub(crate) mod ports;

use super::*;
use ports::free_port;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

const PATIENT: Patience = Patience::new(Duration::from_secs(60), Duration::from_secs(30));

fn launches(size: usize) -> Vec<Launch> {
    let port = free_port();
    let launch = |rank| Launch {
        rank,
        size,
        local_rank: rank,
        host: "127.0.0.1".to_owned(),
        port,
        agent_store: false,
        prefix: "t/".to_owned(),
    };
    (0..size).map(launch).collect()
}

/// What each of some ranks returns.
fn all<T: Send>(size: usize, patience: Patience, work: impl Fn(Ranks) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let members: Vec<_> = launches(size)
            .into_iter()
            .map(|launch| scope.spawn(move || work(Ranks::join(&launch, patience, &|| false).unwrap())))
            .collect();
        members.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

#[test]
fn all_get_the_same_in_the_ranks_order() {
    let got = all(3, PATIENT, |ranks| {
        let first: Vec<usize> = ranks.gather(&ranks.rank()).unwrap();
        let second: Vec<String> = ranks.gather(&format!("rank {}", ranks.rank())).unwrap();
        (first, second)
    });
    assert_eq!(got[2], (vec![0, 1, 2], vec!["rank 0".into(), "rank 1".into(), "rank 2".into()]));
    assert!(got.iter().all(|one| one == &got[0]));
}

#[test]
fn numbers_are_the_same_to_all_to_their_last_bit() {
    // Of those with many digits about every tenth is read one bit off.
    let mut state = 1u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 * 1.7e-13
    };
    let numbers: Vec<f64> = (0..20_000).map(|_| number()).collect();
    let facts: Facts = (0..).zip(&numbers).map(|(i, number)| (format!("{i:05}"), (*number).into())).collect();
    let got = all(3, PATIENT, |ranks| {
        ranks.agree(&facts, &|| false).unwrap();
        let all: Vec<Vec<f64>> = ranks.gather(&numbers).unwrap();
        all.iter().flatten().map(|number| number.to_bits()).collect::<Vec<_>>()
    });
    assert!(got[0] == got[1] && got[1] == got[2]);
}

#[test]
fn tensors_are_summed_by_gloo() {
    let sums = all(2, PATIENT, |ranks| {
        let mut own = tch::Tensor::from_slice(&[0.5f32 + ranks.rank() as f32]);
        ranks.gloo().unwrap().sum(&mut own).unwrap();
        own.double_value(&[0])
    });
    assert_eq!(sums, [2.0, 2.0]);
}

#[test]
fn torchruns_store_is_waited_for_until_somebody_stops() {
    let [first, second] = launches(2).try_into().unwrap();
    let (host, port) = (first.host.clone(), first.port);
    let agent = dflash_torch::Rendezvous { host, port, server: true, prefix: String::new(), timeout: PATIENT.join };
    let _agent = Store::connect(&agent).unwrap();
    let second = Launch { agent_store: true, ..second };
    // Once it has got as far as the store, in which rank 0 never says anything.
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) >= 3;
    let began = Instant::now();
    let stopped = Ranks::join(&second, PATIENT, &stop).err().unwrap().to_string();
    assert!(stopped.contains("it was stopped") && began.elapsed() < PATIENT.join, "{stopped}");
}

#[test]
fn a_clock_that_is_50_ms_ahead_is_measured() {
    const PLANTED: i64 = 50_000_000;
    let launches = launches(2);
    let offset = thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let ahead: Clock = Arc::new(|| dflash_profiler::monotonic_ns() + PLANTED);
        let behind: Clock = Arc::new(dflash_profiler::monotonic_ns);
        let end = scope.spawn(|| {
            let ranks = Ranks::join_by(&launches[0], PATIENT, &|| false, ahead).unwrap();
            ranks.watch_clock(|_| unreachable!("rank 0 has nobody to compare with"));
            let _: Vec<usize> = ranks.gather(&0).unwrap();
        });
        let ranks = Ranks::join_by(&launches[1], PATIENT, &|| false, behind).unwrap();
        ranks.watch_clock(move |offset| tell.send(offset).unwrap());
        let offset = told.recv_timeout(Duration::from_secs(60)).unwrap();
        let _: Vec<usize> = ranks.gather(&0).unwrap();
        drop(ranks);
        end.join().unwrap();
        offset
    });
    // As sure as it says itself that it is: however slow the machine is, the truth lies within.
    assert!((offset.offset_ns - PLANTED).abs() <= offset.uncertainty_ns, "{offset:?}");
    assert!(offset.uncertainty_ns > 0, "{offset:?}");
}

#[test]
fn torchruns_store_is_used_and_its_earlier_attempts_are_not() {
    let [first, second] = launches(2).try_into().unwrap();
    let agent = dflash_torch::Rendezvous {
        host: first.host.clone(),
        port: first.port,
        server: true,
        prefix: String::new(),
        timeout: PATIENT.join,
    };
    let agent = Store::connect(&agent).unwrap();
    // Where rank 0 of a start that failed has listened.
    agent.set("dflash/attempt_0/ranks", "1 1").unwrap();
    let of_torchrun = |launch: Launch| Launch { agent_store: true, prefix: "dflash/attempt_1/".to_owned(), ..launch };
    let launches = [of_torchrun(first), of_torchrun(second)];
    thread::scope(|scope| {
        let other = scope.spawn(|| Ranks::join(&launches[1], PATIENT, &|| false).unwrap().gather(&1).unwrap());
        let own: Vec<usize> = Ranks::join(&launches[0], PATIENT, &|| false).unwrap().gather(&0).unwrap();
        assert_eq!((own, other.join().unwrap()), (vec![0, 1], vec![0, 1]));
    });
}

#[test]
fn clocks_are_compared_again_and_again() {
    const STEP: i64 = 1_000_000_000;
    let launches = launches(2);
    // As often as a sign of life is given, which is each second; and rank 0 may be silent for longer than that.
    let often = Patience { compare: Duration::ZERO, silence: Duration::from_secs(10), ..PATIENT };
    let told = thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        // Rank 0's clock is set on by a second once the first comparison has been told.
        let drift = Arc::new(std::sync::atomic::AtomicI64::new(0));
        let own = Arc::clone(&drift);
        let drifting: Clock =
            Arc::new(move || dflash_profiler::monotonic_ns() + own.load(std::sync::atomic::Ordering::Relaxed));
        let end = scope.spawn(|| {
            let ranks = Ranks::join_by(&launches[0], PATIENT, &|| false, drifting).unwrap();
            let _: Vec<usize> = ranks.gather(&0).unwrap();
        });
        let ranks = Ranks::join_by(&launches[1], often, &|| false, Arc::new(dflash_profiler::monotonic_ns)).unwrap();
        ranks.watch_clock(move |offset| {
            // A test that has ended does not listen any more.
            let _ = tell.send(offset);
        });
        let next = || told.recv_timeout(Duration::from_secs(60)).unwrap();
        let first: ClockOffset = next();
        drift.store(STEP, std::sync::atomic::Ordering::Relaxed);
        // One may have been under way.
        let [_, _, later] = [next(), next(), next()];
        let _: Vec<usize> = ranks.gather(&0).unwrap();
        drop(ranks);
        end.join().unwrap();
        (first, later)
    });
    assert!(told.0.offset_ns.abs() <= told.0.uncertainty_ns, "{told:?}");
    assert!((told.1.offset_ns - STEP).abs() <= told.1.uncertainty_ns, "{told:?}");
}
