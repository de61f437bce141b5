// Some rows of a dataset, drawn by a seed: what a split of it leaves on either side.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "data/dataset.h"
#include "data/stream.h"

namespace st {

/// Row i is the row `order(first + i)` of the whole, which it keeps alive.
class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, const Permutation& order, int64_t first, int64_t count);

  int64_t rows() const override { return count_; }
  std::span<const Field> fields() const override { return whole_->fields(); }
  const CallbackRows* maker() const override { return whole_->maker(); }
  bool may_be_late() const override { return whole_->may_be_late(); }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override;

 private:
  std::vector<int64_t> take_ids(size_t count) const;
  void give_back(std::vector<int64_t> ids) const;

  std::shared_ptr<const Dataset> whole_;
  Permutation order_;
  int64_t first_, count_;

  mutable std::mutex mutex_;
  mutable std::vector<std::vector<int64_t>> idle_ids_;  // kept so that a batch allocates nothing, also with several threads filling
};

struct RowSplit {
  std::shared_ptr<const Dataset> train, validation;
};

/// round(fraction x rows) rows validate, at least one and not all: the first ones of the permutation that `seed` gives. Every row is on one
/// side, and with a greater fraction and the same seed all that validated still does. Throws invalid_argument for a fraction outside (0, 1)
/// and for fewer than two rows.
RowSplit split_rows(const std::shared_ptr<const Dataset>& whole, double fraction, uint64_t seed);

}  // namespace st
