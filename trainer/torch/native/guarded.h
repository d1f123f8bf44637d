// Exceptions end here: what a body throws becomes a text that Rust can own.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include <c10/util/Exception.h>

namespace dflash {

// Given where there is no memory for another text; never freed.
inline char out_of_memory[] = "out of host memory";

inline char* text(const char* words) noexcept {
  // No words would read as success on the other side.
  char* copy = strdup(words && *words ? words : "an error without words");
  return copy ? copy : out_of_memory;
}

template <typename Body>
char* guarded(Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const c10::Error& error) {
    return text(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  } catch (const std::exception& error) {
    return text(error.what());
  } catch (...) {
    return text("an exception that is no std::exception");
  }
}

}  // namespace dflash
