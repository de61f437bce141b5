// The order of rows in the batches: the endless shuffled stream, or each row once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "data/stream.h"

namespace st {

class RowOrder {
 public:
  /// Endless, for training. Implicit: a stream is such an order.
  RowOrder(const DataStream& stream) : stream_(stream), rows_(stream.rows()) {}
  /// 0 to rows - 1, then ends; for evaluation.
  static RowOrder once(int64_t rows) { return RowOrder(rows); }

  /// Writes the rows of the items from `first` >= 0 on into `out`; returns how many: fewer than `out` holds at the end, 0 after it.
  int64_t fill(int64_t first, std::span<int64_t> out) const;

 private:
  explicit RowOrder(int64_t rows) : rows_(rows) {}

  std::optional<DataStream> stream_;  // nullopt: each row once
  int64_t rows_;
};

}  // namespace st
