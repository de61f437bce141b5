// The identity of a run: what its ranks must have in common, and what a checkpoint must have in common with the run that resumes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace st {

struct RunIdentity {
  int64_t seed = 0, batch = 0, micro_batches = 0;
  int64_t rows = 0;                 // of the data
  std::vector<std::string> fields;  // of a row: "tokens i32 [64]"; empty: the run has no data
  std::string kernels;              // kernel class, which decides the bits: "cpu avx512"
  std::string graph, data;          // digests of both (run_digests.h); "": not known
};

std::vector<std::string> texts_of(std::span<const Field> fields);

/// Throws invalid_argument with both values if the run of a checkpoint differs in seed, batch, micro-batches or data; an unknown value
/// matches anything.
void require_same_run(const RunIdentity& here, const RunIdentity& there);

}  // namespace st
