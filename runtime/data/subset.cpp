#include "data/subset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace st {
namespace {

constexpr uint64_t kSplitSite = hash_name("data.split");  // not an epoch's number: the split must differ from every epoch's order

}  // namespace

Subset::Subset(std::shared_ptr<const Dataset> whole, const Permutation& order, int64_t first, int64_t count)
    : whole_(std::move(whole)), order_(order), first_(first), count_(count) {
  check(first >= 0 && count >= 1 && count <= whole_->rows() - first, "data: rows [", first, ", ", first, " + ", count,
        ") are outside the dataset's ", whole_->rows(), " rows");
}

void Subset::fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const {
  std::vector<int64_t> ids = take_ids(rows.size());
  std::ranges::transform(rows, ids.begin(), [&](int64_t row) { return order_(first_ + row); });
  whole_->fill(ids, out);
  give_back(std::move(ids));
}

std::vector<int64_t> Subset::take_ids(size_t count) const {
  std::vector<int64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_ids_.empty()) {
      ids = std::move(idle_ids_.back());
      idle_ids_.pop_back();
    }
  }
  ids.resize(count);
  return ids;
}

void Subset::give_back(std::vector<int64_t> ids) const {
  const std::lock_guard lock(mutex_);
  idle_ids_.push_back(std::move(ids));
}

RowSplit split_rows(const std::shared_ptr<const Dataset>& whole, double fraction, uint64_t seed) {
  check(fraction > 0 && fraction < 1, "data: the validation fraction is ", fraction, "; give a value above 0 and below 1");
  const int64_t rows = whole->rows();
  check(rows >= 2, "data: a split needs at least 2 rows, got ", rows);
  // Clamped as a double: above 2^53 rows the product may round up to more than `rows`.
  const double share = std::clamp(std::round(fraction * static_cast<double>(rows)), 1.0, static_cast<double>(rows));
  const int64_t validation = std::min(static_cast<int64_t>(std::min(share, 0x1p62)), rows - 1);
  const Permutation order(rows, mix(seed, kSplitSite));
  return {std::make_shared<Subset>(whole, order, validation, rows - validation), std::make_shared<Subset>(whole, order, 0, validation)};
}

}  // namespace st
