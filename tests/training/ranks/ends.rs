//! Ranks that die, hang, or are told to stop.

use super::super::resume::state;
use super::super::tiny::Place;
use super::{Crowd, checkpoint, newest, place, single};
use std::fs;
use std::path::Path;

#[test]
fn a_rank_that_is_killed_ends_the_others_by_name_and_the_run_goes_on() {
    let place = place();
    let endless = ["ranks.toml", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&endless, &endless]);
    // The checkpoint of step 5 is then written.
    crowd.hears(0, "step 10/");
    crowd.signal(1, "-KILL");
    assert_eq!(crowd.code(0), Some(4), "{}", crowd.said(0));
    let named = format!("rank 1 (process {} on ", crowd.children[1].id());
    let said = crowd.said(0);
    assert!(said.contains(&named) && said.contains("is gone") && said.contains("--resume"), "{said}");
    drop(crowd);
    assert!(place.ok(&["runs"]).contains("failed"));

    // The other way round, in the same run: rank 0 holds store and connections.
    let run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
    let further = ["ranks.toml", "--resume", "auto", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&further, &further]);
    crowd.hears(0, "resumed after step");
    crowd.hears(0, "/1000000: loss");
    crowd.signal(0, "-KILL");
    assert_eq!(crowd.code(1), Some(4), "{}", crowd.said(1));
    let named = format!("rank 0 (process {} on ", crowd.children[0].id());
    assert!(crowd.said(1).contains(&named) && crowd.said(1).contains("is gone"), "{}", crowd.said(1));
    drop(crowd);

    // What was trained before is not lost, and what follows is as if nothing had happened.
    let last = newest(&run) + 3;
    let steps = last.to_string();
    let end = ["ranks.toml", "--resume", run.to_str().unwrap(), "--steps", &steps];
    let resumed = Crowd::start(&place, [&end, &end]).ends_well();
    assert_eq!(resumed, run);
    let whole = single(&place, &["two.toml", "--name", "whole", "--steps", &steps]);
    assert_eq!(state(&checkpoint(&run, last)), state(&checkpoint(&whole, last)));
}

#[test]
fn a_signal_to_one_rank_stops_all_after_the_same_step() {
    let place = place();
    let endless = ["ranks.toml", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&endless, &endless]);
    crowd.hears(0, "step 5/");
    crowd.signal(1, "-TERM");
    assert_eq!([0, 1].map(|rank| crowd.code(rank)), [Some(0), Some(143)], "{}\n{}", crowd.said(0), crowd.said(1));
    drop(crowd);
    let run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
    assert!(place.ok(&["runs"]).contains("stopped"));
    let stopped = newest(&run);
    assert!(stopped >= 5);
    // Its end in good time is asked of one rank, too.
    let further = ["ranks.toml", "--resume", "auto", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&further, &further]);
    crowd.hears(0, "/1000000: loss");
    crowd.signal(0, "-USR1");
    assert_eq!([0, 1].map(|rank| crowd.code(rank)), [Some(0); 2], "{}\n{}", crowd.said(0), crowd.said(1));
    drop(crowd);
    assert!(newest(&run) > stopped);
}

#[test]
fn a_rank_that_hangs_is_named_once_it_has_been_silent_for_long_enough() {
    let place = Place::new();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/sim/one_and_one.toml");
    let config = fs::read_to_string(shipped).unwrap().replace("[pipeline]", "[pipeline]\nsilence_seconds = 10");
    fs::write(place.path("sim.toml"), config).unwrap();
    let endless = ["sim.toml", "--steps", "1000000"];
    let mut crowd = Crowd::start(&place, [&endless, &endless]);
    crowd.hears(0, "drafter:0 iteration");
    crowd.signal(1, "-STOP");
    assert_eq!(crowd.code(0), Some(4), "{}", crowd.said(0));
    let said = crowd.said(0);
    assert!(said.contains("rank 1 (process ") && said.contains("has said nothing for 10s"), "{said}");
    // It hears of its end as soon as it goes on.
    crowd.signal(1, "-CONT");
    assert_eq!(crowd.code(1), Some(4), "{}", crowd.said(1));
}

#[test]
fn a_limit_of_time_at_one_rank_ends_all_in_good_time() {
    let place = place();
    let run = || {
        let mut runs = fs::read_dir(place.path("runs")).into_iter().flatten();
        runs.next().map(|run| run.unwrap().path()).filter(|run| run.join("checkpoints").exists())
    };
    // On a busy machine a short time is over before there is anything to keep.
    let stopped = ["20s", "60s", "150s"].into_iter().find_map(|limit| {
        let endless = ["ranks.toml", "--steps", "1000000", "--resume", "auto", "--time-limit"];
        let mut crowd = Crowd::start(&place, [&[&endless[..], &["12h"]].concat(), &[&endless[..], &[limit]].concat()]);
        let codes = [0, 1].map(|rank| crowd.code(rank));
        let said = format!("{limit} {codes:?}\n{}\n{}", crowd.said(0), crowd.said(1));
        let met = codes == [Some(0); 2];
        assert!(met || said.contains("it was stopped while it waited for the other ranks"), "{said}");
        run().filter(|_| met)
    });
    let run = stopped.expect("a checkpoint within 150 seconds");
    assert!(place.ok(&["runs"]).contains("stopped"));
    // It goes on from there.
    let last = (newest(&run) + 2).to_string();
    let further = ["ranks.toml", "--resume", "auto", "--steps", &last, "--time-limit", "12h"];
    assert_eq!(place.path(Crowd::start(&place, [&further, &further]).ends_well().to_str().unwrap()), run);
    assert_eq!(newest(&run).to_string(), last);
}
