// One call of each op of the cpu backend that is no product: large enough for many tasks, with odd sizes so that every loop has a tail.
#pragma once

#include <string>
#include <vector>

#include "cpu_kernel.h"
#include "reference_run.h"

namespace st {

struct CpuOpCase {
  std::string name;  // the op's, and what is special
  Op op;
  std::vector<Array> in = {};
  Attrs attrs = {};
  std::vector<Array> slots = {};
};

const std::vector<CpuOpCase>& cpu_op_cases();

struct OpResult {
  std::vector<Array> out, slots;
  bool within_workspace = true;
};

/// Outputs start full of NaN.
OpResult run_on(const CpuSet& set, const CpuOpCase& c, int threads);

bool same_bits(const Array& a, const Array& b);

}  // namespace st
