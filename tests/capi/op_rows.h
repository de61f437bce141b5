// Every op that a model may use: a call of its typed wrapper, the same call by name, and the resulting shape.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "held.h"

namespace st::test {

/// A graph with every kind of value that ops take.
struct Parts {
  explicit Parts(st_context* context);
  operator st_graph*() const { return graph; }

  HeldGraph graph;
  st_value x, y, matrix, vector, bias, flags, labels, weights, picks, q, k;

 private:
  st_value input(const char* name, st_dtype dtype, const std::vector<int64_t>& dims);
};

struct OpRow {
  const char* op;
  std::function<st_value(const Parts&)> wrapper;
  std::vector<st_value Parts::*> inputs;  // for the call by st_graph_op
  const char* attributes;
  st_dtype dtype;
  std::vector<int64_t> dims;
};

const std::vector<OpRow>& op_rows();

/// The shape of fill and the sizes of split in the rows.
constexpr std::array<int64_t, 2> kSizes = {2, 4};

}  // namespace st::test
