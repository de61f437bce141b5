#include "trial_journal.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace st::fuzz {
namespace {

bool tracing = false;

}  // namespace

Journal& journal() {
  static Journal& shared = []() -> Journal& {
    void* memory = mmap(nullptr, sizeof(Journal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return *static_cast<Journal*>(memory);  // zeros are an empty one
  }();
  return shared;
}

void trace_journal() { tracing = true; }

void Journal::begin(const std::string& what) {
  std::snprintf(doing.data(), doing.size(), "%s", what.c_str());
  if (tracing) std::fprintf(stderr, "%s\n", what.c_str());
}

void Journal::finding(const std::string& kernel_class, const std::string& what) {
  ++findings;
  std::fprintf(stderr, "FINDING %s, seed %llu: %s\n  %s\n", kernel_class.c_str(), static_cast<unsigned long long>(seed.load()),
               what.c_str(), doing.data());
}

}  // namespace st::fuzz
