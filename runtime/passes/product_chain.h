// A product and the ops after it that one kernel can apply to its result; the pattern that fuse searches.
#pragma once

#include <map>
#include <vector>

#include "ir/program.h"

namespace st {

/// Node indices, in this order; -1: absent. Reshapes between them that keep the columns are skipped.
struct ProductChain {
  int32_t product = -1;        // matmul of rows and one matrix, or linear
  int32_t bias = -1;           // add of a vector
  int32_t activation = -1;     // gelu, relu, silu
  int32_t derivative = -1;     // backward of an activation, instead of an activation
  int32_t addition = -1;       // add of the residual
  int32_t sums = -1;           // sum over all rows, in addition to y
  std::vector<int32_t> views;  // reshapes that only the chain reads
  Value y, pre_activation;     // y: result of the last node before the sums
  Value residual;              // empty: none
  int32_t pre_activation_reader = -1;
  bool keeps_pre_activation = false;  // a node after the whole chain reads the pre-activation

  int32_t last() const { return y.node; }
  std::vector<int32_t> nodes() const;  // without absent ones
  bool is_linear() const { return bias >= 0 && bias == last() && sums < 0; }
};

/// The chains of a section with more than a product, by last(). No two share a node.
std::map<int32_t, ProductChain> product_chains(const Program& program, const Section& section);

}  // namespace st
