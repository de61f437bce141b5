// A product and the ops behind it that a kernel can do while it has the result in hand: what fuse looks for.
#pragma once

#include <map>
#include <vector>

#include "ir/program.h"

namespace st {

/// Nodes by index, in this order; -1: not there. Reshapes between them that leave the columns alone do not count.
struct ProductChain {
  int32_t product = -1;        // matmul of rows and one matrix, or linear
  int32_t bias = -1;           // add of a vector
  int32_t activation = -1;     // gelu, relu, silu
  int32_t derivative = -1;     // their backward, in place of the activation
  int32_t addition = -1;       // add of the residual
  int32_t sums = -1;           // sum over all rows; y stays
  std::vector<int32_t> views;  // reshapes that only the chain reads
  Value y, pre_activation;     // y: of the last but the sums
  Value residual;              // not there: none
  int32_t pre_activation_reader = -1;
  bool keeps_pre_activation = false;  // something else reads it, after the whole chain

  int32_t last() const { return y.node; }
  std::vector<int32_t> nodes() const;  // those that are there
  bool is_linear() const { return bias >= 0 && bias == last() && sums < 0; }
};

/// The chains of a section that have more than their product, by their last(). No two share a node.
std::map<int32_t, ProductChain> product_chains(const Program& program, const Section& section);

}  // namespace st
