// Runs a random product in guarded memory and returns what it wrote.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpu_kernel.h"
#include "product_problem.h"

namespace st::fuzz {

/// How a product is run.
struct Way {
  TileSchedule schedule;
  int threads = 1;
  int64_t scratch = -1;               // bytes in the plan; < 0: what the kernels request
  const std::byte* packed = nullptr;  // read in place of B
  bool without_product = false;       // alpha is 0: A and B are absent
};

/// The written elements as bits, row by row.
struct Written {
  std::vector<uint32_t> c, pre_activation, column_sums;
};

/// One seed's product with the kernels of one set.
class ProductTrial {
 public:
  ProductTrial(const CpuSet& of, uint64_t seed) : set(of), draw(seed) {}

  Written run(const ProductProblem& product, const Way& way);
  /// Counts and prints a finding.
  void finding(const std::string& what) const;

  const CpuSet& set;
  Draw draw;
};

Workers& workers_of(int threads);  // kept: starting threads takes longer than most products

}  // namespace st::fuzz
