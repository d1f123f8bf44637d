//! Who fails, leaves, falls silent or never comes is named to all.

use super::*;

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
    let patience = Patience { silence: Duration::from_millis(500), ..PATIENT };
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
    let hasty = Patience { join: Duration::from_secs(15), ..PATIENT };
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
