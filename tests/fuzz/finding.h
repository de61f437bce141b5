// How a fuzz target reports a fault: it ends the process, which libFuzzer and mutation_loop.cpp both take for a crash.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace st {

[[noreturn]] inline void found(const std::string& what) {
  std::fprintf(stderr, "FINDING: %s\n", what.c_str());
  std::abort();
}

}  // namespace st
