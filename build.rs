//! Tells the linker where executables find libtorch at run time; the build script of every package that links it.
//!
//! torch-sys knows the place, but the rpath that it passes on does not reach the packages that own executables. They
//! repeat it here: the folder that was built against, so that a copied binary still works on this machine, and the same
//! folder relative to the binary (`target/release/`, `target/debug/deps/`), so that a moved tree works too.

use std::env;
use std::path::Path;
use std::process::Command;

/// Also called by the build script of `trainer/torch`, which has more to do.
pub fn main() {
    println!("cargo::rerun-if-env-changed=LIBTORCH_USE_PYTORCH");
    // The libraries are not built again for it.
    let command = env::var("CARGO_PKG_NAME").is_ok_and(|name| name == "dflash");
    if command {
        say_commit();
    }
    // Set by cargo for a package that depends on torch-sys; without the feature `train` there is nothing to find.
    let Ok(lib) = env::var("DEP_TCH_LIBTORCH_LIB") else { return };
    if env::var_os("LIBTORCH_USE_PYTORCH").is_some() && !lib.ends_with(".libtorch/lib") {
        println!(
            "cargo::error=LIBTORCH_USE_PYTORCH is for scripts/libtorch; run that, then build without the variable"
        );
    }
    // The command itself needs no libtorch, only the program that it becomes.
    let target = if command { "link-arg-bin=dflash-train" } else { "link-arg" };
    for place in [lib.as_str(), "$ORIGIN/../../.libtorch/lib", "$ORIGIN/../../../.libtorch/lib"] {
        println!("cargo::rustc-{target}=-Wl,-rpath,{place}");
    }
}

/// The commit that is built, as DFLASH_COMMIT; outside of a clone of this repository there is none.
fn say_commit() {
    // Named itself, or cargo would look at every file of the package.
    println!("cargo::rerun-if-changed=build.rs");
    let Ok(root) = env::var("CARGO_MANIFEST_DIR") else { return };
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    // Unpacked inside of somebody else's clone, theirs is not ours.
    let same = |top: String| Path::new(&top).canonicalize().ok() == Path::new(&root).canonicalize().ok();
    if !git(&["rev-parse", "--show-toplevel"]).is_some_and(same) {
        return;
    }
    // Written by each commit and each checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo::rustc-env=DFLASH_COMMIT={commit}");
    }
}
