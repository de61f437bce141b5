// Which rows the batches have, one after the other: the endless shuffled stream's, or each row once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "data/stream.h"

namespace st {

class RowOrder {
 public:
  /// Without end: what training reads. A stream is such an order, so it may stand for one.
  RowOrder(const DataStream& stream) : stream_(stream), rows_(stream.rows()) {}
  /// 0 to rows - 1, and then no more: what an evaluation reads.
  static RowOrder once(int64_t rows) { return RowOrder(rows); }

  /// Writes the rows of the items from `first` >= 0 on into `out`; how many there are: fewer than it has room for at the end, 0 after it.
  int64_t fill(int64_t first, std::span<int64_t> out) const;

 private:
  explicit RowOrder(int64_t rows) : rows_(rows) {}

  std::optional<DataStream> stream_;  // none: each row once
  int64_t rows_;
};

}  // namespace st
