//! Opening a shared library so that libraries opened later find its symbols.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Opens `path` with RTLD_NOW | RTLD_GLOBAL, for the rest of the process's life.
///
/// A path without `/` is searched for as `ld.so` does. The error is the loader's own text.
pub fn dlopen_global(path: &Path) -> Result<(), String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| format!("{}: has a NUL in it", path.display()))?;
    // SAFETY: `name` is a NUL-terminated string that outlives the call. The library's initialisers run, which is what
    // the caller asks for. The handle is dropped on purpose: nothing may unload what others link against.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() { Err(last_error(path)) } else { Ok(()) }
}

fn last_error(path: &Path) -> String {
    // SAFETY: dlerror takes nothing; its text is this thread's and valid until the thread's next call of the loader.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return format!("{}: cannot be opened", path.display());
    }
    // SAFETY: not null, so it is the loader's NUL-terminated text; it is copied before anything else runs.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::dlopen_global;

    #[test]
    fn opens_what_is_there_and_names_what_is_not() {
        assert_eq!(dlopen_global(Path::new("libc.so.6")), Ok(()));
        let error = dlopen_global(Path::new("/nowhere/libnothing.so")).unwrap_err();
        assert!(error.contains("/nowhere/libnothing.so"), "{error}");
        assert!(dlopen_global(Path::new("a\0b")).is_err());
    }
}
