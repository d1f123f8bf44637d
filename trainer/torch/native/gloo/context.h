// What c10d's header for Gloo mentions of Gloo's own classes, and no more. Gloo is inside libtorch_cpu, whose wheels bring no
// headers of it along. ProcessGroupGloo holds only pointers to these, so that its layout does not depend on what they are;
// none of them is made or called here. Where Gloo's own headers are installed (libgloo-dev), these come first all the same:
// theirs are of another version than what libtorch was built from.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
