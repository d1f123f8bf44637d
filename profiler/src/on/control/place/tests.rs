use super::*;
use std::os::unix::fs::symlink;

fn uid() -> u32 {
    dflash_sys::effective_uid()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

/// A directory that is nobody else's, whatever the umask is, with room for a socket's name, wherever temporary files lie.
fn private() -> tempfile::TempDir {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    directory
}

#[test]
fn the_runtime_directory_comes_first() {
    let paths = |runtime: Option<&str>, temporary: &str| -> Vec<String> {
        let places = places(runtime.map(Path::new), Path::new(temporary), 7);
        places.iter().map(|place| place.display().to_string()).collect()
    };
    assert_eq!(paths(Some("/run/user/7"), "/tmp"), ["/run/user/7/dflash", "/tmp/dflash-7"]);
    assert_eq!(paths(Some("relative"), "/var/t"), ["/var/t/dflash-7", "/tmp/dflash-7"]);
    assert_eq!(paths(None, "elsewhere"), ["/tmp/dflash-7"]);
}

#[test]
fn a_directory_is_made_and_closed_to_others() {
    let parent = private();
    let directory = parent.path().join("dflash");
    own_directory(&directory, uid()).unwrap();
    assert_eq!(mode(&directory), 0o700);
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    own_directory(&directory, uid()).unwrap();
    assert_eq!(mode(&directory), 0o700, "one that was open is closed");
}

#[test]
fn links_files_and_strangers_are_refused() {
    let parent = private();
    let (real, link, file) = (parent.path().join("real"), parent.path().join("link"), parent.path().join("file"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    fs::write(&file, "").unwrap();
    assert!(own_directory(&link, uid()).is_err(), "a link is not followed");
    assert!(own_directory(&file, uid()).is_err());
    assert!(own_directory(&real, uid() + 1).is_err(), "another user's");
    assert!(own_directory(&parent.path().join("no/where"), uid()).is_err());
    let open = parent.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    assert!(own_directory(&open.join("d"), uid()).unwrap_err().contains("others may change"), "no sticky bit");
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    own_directory(&open.join("d"), uid()).unwrap();
}

#[test]
fn what_a_killed_process_left_is_removed_and_what_lives_is_not() {
    let directory = private();
    let (first, path) = bind_in(directory.path(), Path::new("/some/run"), 0).unwrap();
    assert_eq!(mode(&path), 0o600);
    let (second, beside) = bind_in(directory.path(), Path::new("/some/run"), 0).unwrap();
    assert_ne!(path, beside, "the first one answers");
    assert!(connect(&path, PATIENCE).is_ok());
    // As after SIGKILL: the file stays, nobody listens.
    drop((first, second));
    assert!(path.exists());
    let (_third, again) = bind_in(directory.path(), Path::new("/some/run"), 0).unwrap();
    assert_eq!(path, again);
    let (_other, rank_1) = bind_in(directory.path(), Path::new("/some/run"), 1).unwrap();
    assert_eq!(rank_1, of_rank(&path, 1));
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let directory = private();
    let (listener, path) = bind_in(directory.path(), Path::new("/some/run"), 0).unwrap();
    drop(listener);
    fs::remove_file(&path).unwrap();
    let precious = directory.path().join("precious");
    fs::write(&precious, "kept").unwrap();
    fs::set_permissions(&precious, Permissions::from_mode(0o664)).unwrap();
    symlink(&precious, &path).unwrap();
    let (_listener, beside) = bind_in(directory.path(), Path::new("/some/run"), 0).unwrap();
    assert_ne!(path, beside);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
    assert_eq!(mode(&precious), 0o664, "its mode is its own");
}

#[test]
fn a_path_that_is_too_long_is_said() {
    let directory = private();
    let long = directory.path().join("x".repeat(90));
    fs::create_dir(&long).unwrap();
    assert!(bind_in(&long, Path::new("/some/run"), 0).unwrap_err().contains("at most 107 bytes"));
    // The run's own path may be as long as it likes.
    let run = Path::new("/").join("y".repeat(4000));
    assert!(bind_in(directory.path(), &run, 0).is_ok());
}
