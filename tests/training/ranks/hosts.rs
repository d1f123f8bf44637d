//! What needs more than this host as it is: torchrun, and a second host, which a second network stands in for. Says that it was
//! skipped where that cannot be had.

use super::super::resume::state;
use super::super::tiny::Place;
use super::{PATIENCE, checkpoint, place, single};
use crate::ports::free_port;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

fn skipped(test: &str, lacks: &str) {
    // Past the test harness, which hides what a passing test prints; and no stderr is no reason to fail.
    let _ = std::io::stderr().write_all(format!("SKIPPED {test}: {lacks}\n").as_bytes());
}

/// Runs a command to its end; its exit code, and what it said.
fn to_its_end(place: &Place, command: &mut Command) -> (Option<i32>, String) {
    let log = fs::File::create(place.path("all.log")).unwrap();
    command.current_dir(place.path(".")).env_remove("DFLASH_RUNS").stdout(log.try_clone().unwrap()).stderr(log);
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    let ended = loop {
        match child.try_wait().unwrap() {
            None if began.elapsed() < PATIENCE => std::thread::sleep(std::time::Duration::from_millis(50)),
            ended => break ended,
        }
    };
    if ended.is_none() {
        child.kill().unwrap();
    }
    (ended.and_then(|status| status.code()), fs::read_to_string(place.path("all.log")).unwrap())
}

/// Sums in several threads round differently, and torchrun asks for one each (OMP_NUM_THREADS).
const ONE_THREAD: [&str; 2] = ["--set", "pipeline.threads=1"];

/// The one run of a place, after its last step, is what two drafters of one process make of the same.
fn learnt_as_one_process_does(place: &Place) {
    let run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
    let two = single(place, &[&["two.toml", "--name", "alone"][..], &ONE_THREAD].concat());
    assert!(state(&checkpoint(&run, 12)) == state(&checkpoint(&two, 12)));
}

#[test]
fn torchrun_starts_two_processes_that_learn_as_one() {
    let works = Command::new("torchrun").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        return skipped("torchrun_starts_two_processes_that_learn_as_one", "there is no torchrun on the PATH");
    }
    let place = place();
    let port = free_port().to_string();
    let mut torchrun = Command::new("torchrun");
    torchrun.args(["--no-python", "--nproc-per-node", "2", "--master-port", &port]);
    torchrun.args([env!("CARGO_BIN_EXE_dflash"), "train", "ranks.toml"]).args(ONE_THREAD);
    let (code, said) = to_its_end(&place, &mut torchrun);
    assert_eq!(code, Some(0), "{said}");
    learnt_as_one_process_does(&place);
}

/// Two hosts: a network and a host's name each, with a cable between them; all of it ends with the processes.
const TWO_HOSTS: &str = r#"
set -eu
hostname host-a
ip link set lo up
unshare -n -u sh -c 'hostname host-b; echo $$ >b.pid; until ip -o addr show dev cable1 2>/dev/null | grep -q 10.77.0.2; do sleep 0.1; done
    RANK=1 LOCAL_RANK=0 exec "$@" >b.out 2>b.err' sh "$@" &
until [ -s b.pid ]; do sleep 0.1; done
b=$(cat b.pid)
ip link add cable0 type veth peer name cable1 netns "$b"
ip addr add 10.77.0.1/24 dev cable0
ip link set cable0 up
nsenter -t "$b" -n ip link set lo up
nsenter -t "$b" -n ip link set cable1 up
nsenter -t "$b" -n ip addr add 10.77.0.2/24 dev cable1
RANK=0 LOCAL_RANK=0 "$@"
wait $!
"#;

#[test]
fn two_hosts_learn_as_one_process_does() {
    let probe = "ip link add cable0 type veth peer name cable1 && hostname probe";
    let works =
        Command::new("unshare").args(["-Urnu", "sh", "-c", probe]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        return skipped("two_hosts_learn_as_one_process_does", "networks of its own are not allowed, or ip is missing");
    }
    let place = place();
    let mut hosts = Command::new("unshare");
    hosts.args(["-Urnu", "sh", "-c", TWO_HOSTS, "sh", env!("CARGO_BIN_EXE_dflash"), "train", "ranks.toml"]);
    hosts.args(ONE_THREAD).envs([("WORLD_SIZE", "2"), ("MASTER_ADDR", "10.77.0.1"), ("MASTER_PORT", "29500")]);
    let (code, said) = to_its_end(&place, &mut hosts);
    let other = fs::read_to_string(place.path("b.err")).unwrap_or_default();
    assert_eq!(code, Some(0), "{said}\n{other}");
    learnt_as_one_process_does(&place);
}
