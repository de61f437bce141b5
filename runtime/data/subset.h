// A subset of a dataset's rows, drawn by a seed: one side of a split.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "data/dataset.h"
#include "data/stream.h"

namespace st {

/// Row i is the row `order(first + i)` of the whole dataset, which it keeps alive.
class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, const Permutation& order, int64_t first, int64_t count);

  int64_t rows() const override { return count_; }
  std::span<const Field> fields() const override { return whole_->fields(); }
  const CallbackRows* maker() const override { return whole_->maker(); }
  bool calls_host() const override { return whole_->calls_host(); }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override;

 private:
  std::vector<int64_t> take_ids(size_t count) const;
  void give_back(std::vector<int64_t> ids) const;

  std::shared_ptr<const Dataset> whole_;
  Permutation order_;
  int64_t first_, count_;

  mutable std::mutex mutex_;
  mutable std::vector<std::vector<int64_t>> idle_ids_;  // reused, so that a batch allocates nothing, also with several filling threads
};

struct RowSplit {
  std::shared_ptr<const Dataset> train, validation;
};

/// The first round(fraction x rows) rows of the seed's permutation validate, at least one and not all. Every row is on one side. With the
/// same seed, a larger fraction keeps all earlier validation rows. Throws invalid_argument for a fraction outside (0, 1) or fewer than two
/// rows.
RowSplit split_rows(const std::shared_ptr<const Dataset>& whole, double fraction, uint64_t seed);

}  // namespace st
