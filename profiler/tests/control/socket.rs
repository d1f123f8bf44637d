//! The socket: whose it is, where it lies, when it comes and goes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use dflash_profiler::timeline::control::{Ask, Client, Error};
use dflash_profiler::timeline::{Manifest, RunDir, State};
use dflash_profiler::{Profiler, Severity};

use crate::support::{Run, options};

#[test]
fn only_this_user_can_reach_it() {
    let run = Run::start();
    let socket = run.socket();
    let (file, directory) = (fs::metadata(&socket).unwrap(), fs::metadata(socket.parent().unwrap()).unwrap());
    assert_eq!((file.mode() & 0o777, directory.mode() & 0o777), (0o600, 0o700));
    assert_eq!((file.uid(), directory.uid()), (fs::metadata("/proc/self").unwrap().uid(), file.uid()));
    assert!(socket.as_os_str().len() <= 107);
}

#[test]
fn it_goes_with_the_recording() {
    let run = Run::start();
    let socket = run.socket();
    assert!(socket.exists());
    let mut client = run.client();
    run.profiler.finish();
    assert!(!socket.exists());
    assert!(matches!(client.ask(Ask::Status, &mut |_| {}), Err(Error::Lost { .. } | Error::Refused(_))));
    assert!(matches!(Client::connect(&run.run, 0, "test"), Err(Error::Unreachable { .. })));
}

#[test]
fn dropping_the_last_handle_ends_it_though_a_client_stays() {
    let run = Run::start();
    let directory = tempfile::tempdir().unwrap();
    let other = RunDir::create(directory.path(), "other", Manifest::default()).unwrap();
    let profiler = Profiler::start(options(&other)).unwrap();
    let mut client = Client::connect(&other, 0, "test").unwrap();
    client.ask(Ask::Status, &mut |_| {}).unwrap();
    drop(profiler);
    assert!(!other.manifest().unwrap().control.unwrap().exists());
    assert!(dflash_profiler::timeline::read(&other).unwrap().health.ended, "END is written");
    drop(run);
}

#[test]
fn a_run_without_control_says_so() {
    let run = Run::start();
    let directory = tempfile::tempdir().unwrap();
    let other = RunDir::create(directory.path(), "other", Manifest::default()).unwrap();
    let mut options = options(&other);
    options.control = false;
    let profiler = Profiler::start(options).unwrap();
    assert!(matches!(Client::connect(&other, 0, "test"), Err(Error::NoSocket { .. })));
    profiler.finish();
    drop(run);
}

#[test]
fn a_socket_that_cannot_be_told_is_noted_and_the_training_goes_on() {
    let run = Run::start();
    let directory = tempfile::tempdir().unwrap();
    let other = RunDir::create(directory.path(), "other", Manifest::default()).unwrap();
    // No room in the spare file, and in the way of the one that replaces run.json otherwise.
    fs::remove_file(other.path().join(".run.json.spare")).unwrap();
    fs::create_dir(other.path().join(format!(".run.json.{}", std::process::id()))).unwrap();
    let profiler = Profiler::start(options(&other)).unwrap();
    profiler.mark(Severity::Info, "trains");
    profiler.finish();
    let marks = dflash_profiler::timeline::read(&other).unwrap().marks;
    assert_eq!(marks[0].severity, Severity::Info);
    assert!(marks[0].text.starts_with("control: this run takes no requests: "), "{}", marks[0].text);
    assert!(marks[0].text.contains("run.json"), "{}", marks[0].text);
    assert_eq!(marks[1].text, "trains");
    drop(run);
}

#[test]
fn runs_that_cannot_be_controlled_are_told_apart() {
    let run = Run::start();
    let with = |change: &dyn Fn(&mut Manifest)| {
        let directory = tempfile::tempdir().unwrap();
        let mut manifest = run.run.manifest().unwrap();
        change(&mut manifest);
        let other = RunDir::create(directory.path(), "other", manifest.clone()).unwrap();
        let error = Client::connect(&other, 0, "test").unwrap_err();
        (error.is_bad_input(), error.to_string())
    };
    let (bad, text) = with(&|manifest| manifest.host = "gpu-7".into());
    assert!(bad && text.starts_with("the trainer runs on gpu-7: nothing can be controlled from here"), "{text}");
    let (bad, text) = with(&|manifest| manifest.state = State::Finished);
    assert!(bad && text.contains("is over (finished)"), "{text}");
    let (bad, text) = with(&|manifest| manifest.control = Some("/nowhere/x.sock".into()));
    assert!(!bad && text.starts_with("/nowhere/x.sock: nobody answers"), "{text}");
    let (bad, text) = with(&|manifest| manifest.control = Some(run.run.path().join("run.json")));
    assert!(!bad && text.contains("is not yours"), "no socket: {text}");
}

#[test]
fn every_rank_has_its_own() {
    let run = Run::start();
    let mut options = options(&run.run);
    options.rank = 3;
    let other = Profiler::start(options).unwrap();
    let status = |rank| Client::connect(&run.run, rank, "test").unwrap().ask(Ask::Status, &mut |_| {}).unwrap();
    for rank in [0, 3] {
        let dflash_profiler::timeline::control::Answer::Status(status) = status(rank) else { panic!() };
        assert_eq!(status.rank, rank);
    }
    other.finish();
    assert!(matches!(Client::connect(&run.run, 3, "test"), Err(Error::Unreachable { .. })));
    assert!(run.ask(Ask::Status).is_ok());
}

/// Name of the test that another user's process runs.
const STRANGER: &str = "socket::as_a_stranger";

#[test]
fn another_user_is_turned_away_even_if_the_socket_is_open_to_all() {
    let run = Run::start();
    let socket = run.socket();
    let above = socket.parent().unwrap().parent().unwrap();
    let anyone_may_enter = above.ancestors().all(|folder| fs::metadata(folder).unwrap().mode() & 0o001 != 0);
    if fs::metadata("/proc/self").unwrap().uid() != 0 || !anyone_may_enter {
        // Only root can become somebody else; permission bits are tested above.
        println!("skipped: only root, in a place where anyone may go, can try it");
        return;
    }
    // Where anyone may go, by a second name of the same socket.
    let open = tempfile::tempdir_in(above).unwrap();
    fs::set_permissions(open.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let reachable = open.path().join("s.sock");
    fs::hard_link(&socket, &reachable).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let program = open.path().join("stranger");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", STRANGER, "--nocapture"]).env("DFLASH_TEST_SOCKET", &reachable).current_dir("/");
    let output = command.uid(65534).gid(65534).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("only the user who started the run may control it"), "{said}");
    assert!(said.contains("is not yours"), "its own client does not talk to it either: {said}");
    assert!(run.marks().is_empty(), "and nothing was done");
}

#[test]
fn as_a_stranger() {
    let Some(path) = std::env::var_os("DFLASH_TEST_SOCKET") else { return };
    let mut stream = UnixStream::connect(&path).unwrap();
    let _ = stream.write_all(b"{\"do\":\"mark\",\"text\":\"I was here\"}\n");
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    println!("{said}");
    println!("{}", Client::open(path.as_ref(), "stranger").unwrap_err());
}
