//! Compiles the C++ shim of native/, and passes on where libtorch lies.

use std::env;
use std::path::{Path, PathBuf};

/// Where executables find libtorch: the same for all packages that link it.
#[path = "../../build.rs"]
mod rpath;

const SOURCES: [&str; 11] = [
    "stream.cpp",
    "event.cpp",
    "allocator.cpp",
    "kineto.cpp",
    "kernels.cpp",
    "fused.cpp",
    "optimizer.cpp",
    "tensor.cpp",
    "gradient.cpp",
    "group.cpp",
    "attention.cpp",
];

fn main() {
    rpath::main();
    let include = include();
    if !include.join("c10/core/Event.h").exists() {
        println!("cargo::error={} has no headers of libtorch; run scripts/libtorch", include.display());
        return;
    }
    println!("cargo::rerun-if-changed=native");
    println!("cargo::rerun-if-changed=build.rs");
    compile(&include);
}

/// As torch-sys compiles its own C++, so that both agree with libtorch.
fn compile(include: &Path) {
    println!("cargo::rerun-if-env-changed=LIBTORCH_CXX11_ABI");
    let abi = env::var("LIBTORCH_CXX11_ABI").unwrap_or_else(|_| "1".to_owned());
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").pic(true).warnings(true);
    // native/gloo stands in for headers that libtorch's own mention and no wheel of it has.
    build.include("native");
    // Kineto's headers are found beside it; -isystem, because libtorch's warnings are not ours to mend.
    for dir in [include.to_owned(), include.join("torch/csrc/api/include"), include.join("kineto")] {
        build.flag("-isystem").flag(dir);
    }
    build.define("_GLIBCXX_USE_CXX11_ABI", abi.as_str()).define("GLOG_USE_GLOG_EXPORT", None);
    // Wrappers: nothing to gain from more, and half the time to compile.
    build.opt_level(1).debug(false);
    build.files(SOURCES.map(|file| Path::new("native").join(file))).compile("dflash_shim");
}

/// torch-sys tells its libraries' place only; the headers are found as it finds them.
fn include() -> PathBuf {
    println!("cargo::rerun-if-env-changed=LIBTORCH_INCLUDE");
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    let root = env::var_os("LIBTORCH_INCLUDE").or_else(|| env::var_os("LIBTORCH"));
    PathBuf::from(root.unwrap_or_default()).join("include")
}
