//! What the compiler makes of a span: without the feature `spans` nothing; with it, and off, a load and a branch.
//!
//! A function is compiled with optimisation against the very library that this test is linked with, and its assembly
//! looked at.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Assembly of the crate `work` with this source.
fn compile(source: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let (file, assembly) = (directory.path().join("work.rs"), directory.path().join("work.s"));
    fs::write(&file, source).unwrap();
    // The newest library that has the same feature: the other one does not know what the source asks for.
    let mut failures = Vec::new();
    for library in libraries() {
        let output = rustc(&library, &file, &assembly);
        if output.status.success() {
            return fs::read_to_string(&assembly).unwrap();
        }
        failures.push(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    panic!("no library fits: {failures:#?}");
}

fn rustc(library: &Path, source: &Path, assembly: &Path) -> Output {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let dependency = |name: &str, path: &Path| format!("{name}={}", path.display());
    Command::new(compiler)
        .args(["--edition=2024", "--crate-type=lib", "--crate-name=work", "--emit=asm", "-Copt-level=3"])
        .args(["-L", &dependency("dependency", library.parent().unwrap())])
        .args(["--extern", &dependency("dflash_profiler", library), "-o"])
        .args([assembly, source])
        .output()
        .unwrap()
}

/// Every build of the library beside this test, newest first.
fn libraries() -> Vec<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let files = fs::read_dir(test.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        name.starts_with("libdflash_profiler-") && name.ends_with(".rlib")
    };
    let mut libraries: Vec<PathBuf> = files.filter(is_library).collect();
    libraries.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).and_then(|m| m.modified()).unwrap()));
    assert!(!libraries.is_empty(), "no library beside {}", test.display());
    libraries
}

/// What differs for other reasons: the names of files.
#[cfg(not(feature = "spans"))]
fn code(assembly: &str) -> String {
    assembly.lines().filter(|line| !line.trim_start().starts_with(".file")).collect::<Vec<_>>().join("\n")
}

#[cfg(not(feature = "spans"))]
#[test]
fn compiled_out_nothing_is_left() {
    let source = |spans: bool| {
        let macros = [
            "let iteration = begin_iteration(Kind::Train); iteration.tokens(data.len() as u64);",
            "let _span = span!(\"work\");",
            "let _layer = span!(\"layer\", index = place);",
            "let _forward = span!(\"forward\", stream); let _deep = span!(\"deep\", stream, index = place);",
            "flow_put(place as u64); add_time(\"work\", std::time::Duration::from_millis(3));",
        ];
        let [begin, outer, inner, device, other] = if spans { macros } else { [""; 5] };
        format!(
            "#![allow(unused_imports)]
            use dflash_profiler::{{DeviceStream, Kind, SpanGuard, add_time, begin_iteration, flow_put, span}};
            const _: SpanGuard = SpanGuard::nothing();
            #[inline(never)]
            pub fn work(data: &mut [u64], stream: Option<&dyn DeviceStream>) -> u64 {{
                {begin}
                {outer}
                let _ = stream;
                let mut sum = 0;
                for (place, value) in data.iter_mut().enumerate() {{
                    {inner}
                    {device}
                    *value = value.wrapping_mul(3).rotate_left(5) ^ place as u64;
                    {other}
                    sum ^= *value;
                }}
                sum
            }}"
        )
    };
    let (with, without) = (compile(&source(true)), compile(&source(false)));
    assert!(with.contains("work"), "{with}");
    assert_eq!(code(&with), code(&without));
}

#[cfg(feature = "spans")]
#[test]
fn off_is_a_load_and_a_branch() {
    let source = |span: &str| {
        format!(
            "#![allow(unused_imports)]
            use dflash_profiler::{{Site, span}};
            pub static SITE: Site = Site::new(\"x\");
            #[inline(never)]
            pub fn work(x: u64) -> u64 {{
                {span}
                std::hint::black_box(x.wrapping_mul(3))
            }}"
        )
    };
    let (with, without) = (compile(&source("let _span = span!(\"work\");")), compile(&source("")));
    let count = |text: &str, what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count(&with, "LEVEL"), 1, "the level is read once: {with}");
    assert_eq!(count(&without, "LEVEL"), 0);
    if cfg!(target_arch = "x86_64") {
        assert_eq!(count(&without, "call"), 0, "{without}");
        // Both are jumped over while off: the level and then the guard are tested first.
        assert_eq!(count(&with, "call"), 2, "{with}");
        assert_eq!(count(&with, "SpanGuard5begin"), 1, "{with}");
        assert_eq!(count(&with, "SpanGuard3end"), 1, "{with}");
        assert_eq!(count(&with, "\tlock"), 0, "no atomic operation but loads");
    }
}
