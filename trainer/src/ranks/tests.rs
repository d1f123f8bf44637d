//! Ranks of one process: each would be one, but they do not mind. Real processes: tests/training/ranks.rs of the command.

use super::*;
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

const PATIENT: Patience = Patience { join: Duration::from_secs(60), silence: Duration::from_secs(30) };

fn launches(size: usize) -> Vec<Launch> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
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
fn who_waits_for_the_others_before_the_training_hears_that_it_shall_stop() {
    for stopped in [0, 1] {
        let errors = all(2, PATIENT, |ranks| {
            // All have come.
            let _: Vec<usize> = ranks.gather(&0).unwrap();
            if ranks.rank() == stopped {
                return ranks.gather_unless(&0, &|| true).unwrap_err().to_string();
            }
            // It is still at something else.
            while ranks.ended().is_none() {
                thread::sleep(Duration::from_millis(5));
            }
            ranks.gather_unless(&0, &|| false).unwrap_err().to_string()
        });
        assert!(errors[stopped].contains("it was stopped while it waited for the other ranks"), "{errors:?}");
        let told = &errors[1 - stopped];
        assert!(told.starts_with(&format!("rank {stopped} (process ")) && told.contains("it was stopped"), "{told}");
    }
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
fn who_fails_is_named_to_all_with_its_cause() {
    let errors = all(3, PATIENT, |ranks| {
        let _: Vec<usize> = ranks.gather(&0).unwrap();
        if ranks.rank() == 1 {
            ranks.fail("its disk is full");
            return String::new();
        }
        ranks.gather(&0).unwrap_err().to_string()
    });
    let who =
        format!("rank 1 (process {} on {}) failed: its disk is full", std::process::id(), dflash_profiler::hostname());
    assert_eq!(errors, [who.clone(), String::new(), who]);
}

#[test]
fn who_leaves_or_panics_while_others_wait_is_named() {
    let errors = all(2, PATIENT, |ranks| {
        // All have come: else the news may already end the meeting.
        let _: Vec<usize> = ranks.gather(&0).unwrap();
        if ranks.rank() == 1 {
            drop(ranks);
            return String::new();
        }
        ranks.gather(&0).unwrap_err().to_string()
    });
    assert!(errors[0].starts_with("rank 1 (") && errors[0].ends_with("has ended before the others"), "{errors:?}");
    let errors = all(2, PATIENT, |ranks| {
        // All have come: else the news may already end the meeting.
        let _: Vec<usize> = ranks.gather(&0).unwrap();
        if ranks.rank() == 1 {
            let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _ranks = ranks;
                panic!("planted");
            }));
            return format!("{}", died.is_err());
        }
        ranks.gather(&0).unwrap_err().to_string()
    });
    assert!(errors[0].ends_with("failed: it panicked") && errors[1] == "true", "{errors:?}");
}

#[test]
fn who_falls_silent_is_named_after_a_while() {
    // A connection on which nothing is said, as of a process that was stopped.
    let [first, second] = &launches(2)[..] else { unreachable!() };
    let patience = Patience { join: Duration::from_secs(60), silence: Duration::from_millis(500) };
    thread::scope(|scope| {
        let own = scope.spawn(move || {
            // On a busy machine it may be silent for so long already.
            let ranks = Ranks::join(first, patience, &|| false);
            ranks.and_then(|ranks| Ok(ranks.gather(&0)?)).unwrap_err().to_string()
        });
        let inbox = Arc::<Inbox>::default();
        let clock: Clock = Arc::new(dflash_profiler::monotonic_ns);
        let meeting = Meeting { launch: second, patience, inbox: &inbox, clock: &clock, stop: &|| false };
        let store = meeting.store(false).unwrap();
        let told = store.get("ranks").unwrap();
        let [port, secret] = told.splitn(3, ' ').take(2).collect::<Vec<_>>().try_into().unwrap();
        // By another address of this host than MASTER_ADDR is to rank 0.
        let stream = std::net::TcpStream::connect(("127.0.0.2", port.parse().unwrap())).unwrap();
        let (out, _receiver) = wire::halves(stream, PATIENT.silence).unwrap();
        out.send(&wire::Up::Join { secret: secret.parse().unwrap(), rank: 1, who: "mute".into() }).unwrap();
        let error = own.join().unwrap();
        assert!(error.starts_with("rank 1 (mute) has said nothing for 500ms"), "{error}");
    });
}

#[test]
fn who_does_not_come_is_named() {
    let launches = launches(3);
    // Rank 2 must come within that, however busy the machine is.
    let hasty = Patience { join: Duration::from_secs(15), silence: PATIENT.silence };
    let errors: Vec<_> = thread::scope(|scope| {
        let other =
            scope.spawn(|| Ranks::join(&launches[2], PATIENT, &|| false).unwrap().gather(&0).unwrap_err().to_string());
        let own = Ranks::join(&launches[0], hasty, &|| false).err().unwrap().to_string();
        [own, other.join().unwrap()].into()
    });
    assert_eq!(errors[0], "rank 0 of 3: rank 1 did not come within 15s");
    assert!(errors[1].contains("rank 1 did not come within 15s"), "{}", errors[1]);
    // Nobody at all, and somebody who wants to stop.
    let hasty = Patience { join: Duration::from_millis(100), ..hasty };
    let alone = Ranks::join(&launches[1], hasty, &|| false).err().unwrap().to_string();
    assert!(alone.contains("nobody answered at 127.0.0.1:") && alone.contains("start rank 0"), "{alone}");
    let began = Instant::now();
    let stopped = Ranks::join(&launches[1], PATIENT, &|| true).err().unwrap().to_string();
    assert!(stopped.contains("it was stopped") && began.elapsed() < PATIENT.join, "{stopped}");
}

#[test]
fn two_of_one_number_are_refused() {
    let launches = launches(3);
    let errors: Vec<_> = thread::scope(|scope| {
        let joined = [0, 1, 1].map(|rank| {
            let launch = &launches[rank];
            scope.spawn(move || match Ranks::join(launch, PATIENT, &|| false) {
                Ok(ranks) => ranks.gather(&0).unwrap_err().to_string(),
                Err(error) => error.to_string(),
            })
        });
        joined.map(|joined| joined.join().unwrap()).into()
    });
    // The third one is no member, and yet told.
    assert!(errors.iter().all(|error| error.contains("two processes have this RANK")), "{errors:?}");
}

#[test]
fn strangers_keep_nobody_waiting() {
    let [first, second] = launches(2).try_into().unwrap();
    thread::scope(|scope| {
        let own = scope.spawn(|| Ranks::join(&first, PATIENT, &|| false).unwrap().gather(&0));
        let inbox = Arc::<Inbox>::default();
        let clock: Clock = Arc::new(dflash_profiler::monotonic_ns);
        let meeting = Meeting { launch: &second, patience: PATIENT, inbox: &inbox, clock: &clock, stop: &|| false };
        let store = meeting.store(false).unwrap();
        let told = store.get("ranks").unwrap();
        let port: u16 = told.split(' ').next().unwrap().parse().unwrap();
        // Each of them would take the five seconds that it has to say who it is: longer than anybody waits.
        let strangers: Vec<_> = (0..20).map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        let other: Vec<usize> = Ranks::join(&second, PATIENT, &|| false).unwrap().gather(&1).unwrap();
        assert_eq!((own.join().unwrap().unwrap(), other), (vec![0, 1], vec![0, 1]));
        drop(strangers);
    });
}

#[test]
fn rank_0_that_goes_is_named_with_its_process_and_host() {
    let who = format!("rank 0 (process {} on {})", std::process::id(), dflash_profiler::hostname());
    for dies in [false, true] {
        let errors = all(2, PATIENT, |ranks| {
            // All have come.
            let _: Vec<usize> = ranks.gather(&0).unwrap();
            if ranks.rank() > 0 {
                return ranks.gather(&0).unwrap_err().to_string();
            }
            if let (true, Side::Hub(hub)) = (dies, &ranks.side) {
                hub.cut();
            } else {
                ranks.fail("its disk is full");
            }
            String::new()
        });
        let what = if dies { "is gone" } else { "failed: its disk is full" };
        assert!(errors[1].starts_with(&format!("{who} {what}")), "{errors:?}");
    }
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
