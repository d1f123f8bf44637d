//! Tells the linker where executables find libtorch at run time; the build script of every package that links it.
//!
//! torch-sys knows the place, but the rpath that it passes on does not reach the packages that own executables. They
//! repeat it here: the folder that was built against, so that a copied binary still works on this machine, and the same
//! folder relative to the binary (`target/release/`, `target/debug/deps/`), so that a moved tree works too.

use std::env;

/// Also called by the build script of `trainer/torch`, which has more to do.
pub fn main() {
    println!("cargo::rerun-if-env-changed=LIBTORCH_USE_PYTORCH");
    // Set by cargo for a package that depends on torch-sys; without the feature `train` there is nothing to find.
    let Ok(lib) = env::var("DEP_TCH_LIBTORCH_LIB") else { return };
    if env::var_os("LIBTORCH_USE_PYTORCH").is_some() && !lib.ends_with(".libtorch/lib") {
        println!(
            "cargo::error=LIBTORCH_USE_PYTORCH is for scripts/libtorch; run that, then build without the variable"
        );
    }
    for place in [lib.as_str(), "$ORIGIN/../../.libtorch/lib", "$ORIGIN/../../../.libtorch/lib"] {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{place}");
    }
}
