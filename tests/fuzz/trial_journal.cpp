#include "trial_journal.h"

#include <cstdio>

#include "seeded_trials.h"

namespace st::fuzz {
namespace {

bool tracing = false;

}  // namespace

Journal& journal() {
  static auto& shared = shared_zeros<Journal>();  // an empty journal
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
