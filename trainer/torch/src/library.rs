//! Opening libtorch_cuda.so.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What became of libtorch_cuda.so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CudaLibrary {
    /// Opened from here.
    Loaded(PathBuf),
    /// Not on this machine.
    Absent,
    /// It is there, but the loader refused it.
    Failed {
        /// The file.
        path: PathBuf,
        /// The loader's words, naming what it lacks.
        cause: String,
    },
}

impl CudaLibrary {
    /// Why a GPU that was asked for is not among the `gpus` that libtorch sees.
    #[must_use]
    pub fn why_not(&self, gpus: usize) -> String {
        match self {
            Self::Absent => "libtorch_cuda.so was not found; run scripts/libtorch --cuda".to_owned(),
            Self::Failed { path, cause } => format!("{} could not be opened: {cause}", path.display()),
            Self::Loaded(_) if gpus == 0 => "libtorch sees no GPU; is the driver running?".to_owned(),
            Self::Loaded(_) => format!("there are {gpus} GPUs, numbered from 0"),
        }
    }
}

/// Opens libtorch_cuda.so once a process; later calls return the first one's answer. The first call belongs to the begin of
/// the program, before it starts threads: it may set an environment variable.
///
/// Looked for in `$DFLASH_LIBTORCH_CUDA` (a directory), `.libtorch/cuda` of the tree that the binary was built in, beside
/// the libtorch_cpu.so that is loaded, and in `$LD_LIBRARY_PATH`.
pub fn load_cuda() -> &'static CudaLibrary {
    static LOADED: OnceLock<CudaLibrary> = OnceLock::new();
    LOADED.get_or_init(|| {
        let_go_of_cupti();
        open()
    })
}

fn open() -> CudaLibrary {
    match places().into_iter().map(|dir| dir.join(NAME)).find(|path| path.exists()) {
        None => CudaLibrary::Absent,
        Some(path) => match dflash_sys::dlopen_global(&path) {
            Ok(()) => CudaLibrary::Loaded(path),
            Err(cause) => CudaLibrary::Failed { path, cause },
        },
    }
}

/// After a kernel capture Kineto keeps CUPTI attached unless it is told to let go, and every launch then goes on costing
/// more: a launch-bound loop stayed 30 % slower (docs/measurements.md). Said here, before CUDA and its threads are there:
/// the environment must not change under other threads, so a program calls `load_cuda` before it starts any. Whoever has
/// set the variable is obeyed.
fn let_go_of_cupti() {
    if env::var_os(TEARDOWN).is_none() {
        // SAFETY: once a process, and by the contract of `load_cuda` while it has no other thread that reads the environment.
        unsafe { env::set_var(TEARDOWN, "1") };
    }
}

const TEARDOWN: &str = "TEARDOWN_CUPTI";

const NAME: &str = "libtorch_cuda.so";

fn places() -> Vec<PathBuf> {
    let named = env::var_os("DFLASH_LIBTORCH_CUDA").map(PathBuf::from);
    let cpu = loaded_from("libtorch_cpu.so");
    // scripts/libtorch puts CUDA's half into .libtorch/cuda, beside .libtorch/lib.
    let beside = cpu.as_deref().and_then(Path::parent).map(|root| root.join("cuda"));
    let search = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let search: Vec<PathBuf> = env::split_paths(&search).collect();
    named.into_iter().chain(beside).chain(cpu).chain(search).collect()
}

/// The directory of a library of this process, from the kernel's list of mappings.
fn loaded_from(name: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.ends_with(name))?;
    Path::new(path).parent().map(Path::to_owned)
}
