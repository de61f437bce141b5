#include "parts/gradient_bucket.h"

#include <algorithm>
#include <array>

#include "base/combine.h"
#include "base/float_mode.h"

namespace st {
namespace {

bool is_narrow(DType dtype) { return bytes_of(dtype) == 2; }

}  // namespace

void GradientReduction::settle(DType dtype, std::byte* sums, std::byte* to, int64_t n) const {
  constexpr int64_t kRun = 4096;  // elements
  const bool divides = op == ReduceOp::mean && ranks.size() > 1;
  if (n == 0 || (!divides && !is_narrow(dtype))) return;
  const FloatMode mode;
  workers.run_range(n, kRun, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    std::byte* const from = sums + begin * sum_bytes_of(dtype);
    if (divides) divide(dtype, ranks.size(), from, count);
    if (!is_narrow(dtype)) return;
    std::array<uint16_t, kRun> rounded;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
    auto* const narrowed = to == nullptr ? reinterpret_cast<std::byte*>(rounded.data()) : to + begin * bytes_of(dtype);
    narrow(dtype, from, narrowed, count);
    if (to == nullptr) widen(dtype, narrowed, from, count);
  });
}

/// Makes the room that the gradient needs.
void GradientBucket::begin(DType dtype, int64_t own_elements) {
  memory_.make_room();
  if (how_.in_place && is_narrow(dtype))
    how_.narrow_sums.resize(std::max(how_.narrow_sums.size(), static_cast<size_t>(own_elements_ + own_elements)));
  own_elements_ += own_elements;
}

void GradientBucket::clear() {
  memory_.clear();
  gradients_ = elements_ = own_elements_ = bytes_ = 0;
}

void GradientBucket::run() {
  Communicator& ranks = how_.ranks;
  if (how_.in_place && ranks.size() == 1) return;  // the gradients are the results
  if (how_.gathers && gradients_ == 1) return ranks.all_reduce(data_, elements_, dtype_, how_.op, label_);
  if (how_.in_place && is_narrow(dtype_))  // in place the sums would be wider than what they replace
    memory_.sum_into(how_.narrow_sums.data(), own_elements_);
  else if (how_.in_place)
    memory_.sum_in_place();
  memory_.reduce(dtype_, SumType::wide, ranks.size(), adds_, label_);
  if (how_.in_place) settle_in_place();
  if (how_.gathers) memory_.gather(dtype_, label_);
}

void GradientBucket::settle_in_place() {
  float* apart = how_.narrow_sums.data();
  for (const Communicator::Shard& shard : memory_.own()) {
    auto* const to = static_cast<std::byte*>(shard.data);
    how_.settle(dtype_, is_narrow(dtype_) ? reinterpret_cast<std::byte*>(apart) : to, to, shard.elements);
    if (is_narrow(dtype_)) apart += shard.elements;
  }
}

}  // namespace st
