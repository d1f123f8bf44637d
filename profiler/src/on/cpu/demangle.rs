//! Names of functions as people write them.

use cpp_demangle::{DemangleOptions, Symbol};

/// Bytes of a name that are kept: some of libtorch's templates have ten times that.
const LONGEST: usize = 400;
/// A name of more bytes is not worth the demangling.
const LONGEST_RAW: usize = 16 << 10;

/// A Rust or C++ symbol without hash, parameters and return type; others as they are.
pub(crate) fn demangle(symbol: &str) -> String {
    if symbol.len() > LONGEST_RAW {
        return clip(symbol.to_owned());
    }
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return clip(format!("{rust:#}"));
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let cpp = symbol.starts_with("_Z").then(|| Symbol::new(symbol).ok()?.demangle_with_options(&options).ok());
    clip(cpp.flatten().unwrap_or_else(|| symbol.to_owned()))
}

fn clip(mut name: String) -> String {
    if name.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name.truncate(end);
        name.push('…');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, demangle};

    #[test]
    fn rust_cpp_and_c() {
        assert_eq!(demangle("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"), "core::fmt::Formatter::write_str");
        assert_eq!(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangle("_ZN2at6native6matmulERKNS_6TensorES3_"), "at::native::matmul");
        assert_eq!(demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"), "std::vector<int, std::allocator<int> >::push_back");
        assert_eq!(demangle("pthread_create"), "pthread_create");
        assert_eq!(demangle("_Z"), "_Z");
        assert_eq!(demangle(""), "");
    }

    #[test]
    fn long_names_are_clipped() {
        assert_eq!(demangle(&"é".repeat(5_000)).len(), LONGEST + "…".len());
        assert!(demangle(&"_ZN".repeat(100_000)).len() <= LONGEST + "…".len());
    }
}
