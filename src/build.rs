//! What a program was built from. The two may be of different builds: `cargo build --no-default-features` makes a new `dflash`
//! and leaves the `dflash-train` beside it as it was.

use std::env;

/// In which `dflash` tells the trainer what it was built from itself.
pub const VARIABLE: &str = "DFLASH_BUILT_FROM";

/// The commit, where it was built in a clone of the repository.
pub const COMMIT: Option<&str> = option_env!("DFLASH_COMMIT");

/// Version and commit.
pub fn own() -> String {
    format!("{}, commit {}", env!("CARGO_PKG_VERSION"), COMMIT.unwrap_or("unknown"))
}

/// What to say if the `dflash` that became this program is of another build.
pub fn differs() -> Option<String> {
    let front = env::var(VARIABLE).ok()?;
    let own = own();
    (front != own).then(|| {
        format!(
            "dflash: warning: dflash was built from {front}, and dflash-train beside it from {own}; build both: cargo \
             build --release"
        )
    })
}
