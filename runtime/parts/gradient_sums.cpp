#include "parts/gradient_sums.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"

namespace st {

GradientSums::GradientSums(const GradientReduction& how, std::vector<Gradient> gradients, int64_t bucket_bytes,
                           std::shared_ptr<MemorySource> memory)
    : how_(how),
      gradients_(std::move(gradients)),
      bucket_bytes_(bucket_bytes),
      memory_(std::move(memory)),
      given_(gradients_.size()),
      buckets_{Bucket(how_), Bucket(how_)} {}

/// fits().
void GradientSums::add(Bucket& bucket, size_t gradient, DType dtype, void* data) {
  const Gradient& of = gradients_[gradient];
  const auto cut = [&](int rank) { return (*of.cuts)[rank]; };
  bucket.exchange.add(dtype, given_[gradient].times > 0, data, of.elements, cut, of.own, of.name);
  given_[gradient] = {dtype, given_[gradient].times + 1};
  has_begun_ = true;
}

void GradientSums::require_same_type(size_t gradient, DType dtype) const {
  const Given& before = given_[gradient];
  check(before.times == 0 || before.dtype == dtype, "sharded optimizer: ", gradients_[gradient].name, " is ", dtype, ", but was ",
        before.dtype, " in earlier micro-batches of this step");
}

void GradientSums::give(size_t gradient, const HostView& view) {
  if (gradients_[gradient].cuts == nullptr) return;
  require_same_type(gradient, view.dtype);
  const int64_t more = bytes(gradient, view.dtype);
  if (!fits(buckets_[open_], gradient, view.dtype, buckets_[open_].room.size())) flush();
  Bucket& bucket = buckets_[open_];
  if (bucket.exchange.is_empty()) {
    int64_t all = 0;
    for (size_t i = 0; i < gradients_.size(); ++i) all += gradients_[i].cuts == nullptr ? 0 : bytes(i, view.dtype);
    const int64_t need = std::max(more, std::min(bucket_bytes_, all));
    if (bucket.room.size() < need) bucket.room = Memory(need, memory_, MemoryRole::buckets);
  }
  std::byte* const copy = bucket.room.data() + bucket.exchange.bytes();
  if (more > 0) std::memcpy(copy, view.data, static_cast<size_t>(more));
  add(bucket, gradient, view.dtype, copy);
  if (bucket.exchange.bytes() >= bucket_bytes_) try_flush();
}

/// Where it cannot be posted now, the next call does it: the gradient has been taken. What an exchange has failed with is thrown.
void GradientSums::try_flush() {
  try {
    how_.queue.start();
  } catch (const std::bad_alloc&) {
    return;
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory && error.code() != Code::unavailable) throw;
    return;
  }
  flush();
}

/// Posts the gradients given so far and opens the other bucket, when it has been reduced.
void GradientSums::flush() {
  if (buckets_[open_].exchange.is_empty()) return;
  buckets_[open_].exchange.post();
  open_ = 1 - open_;
  buckets_[open_].exchange.wait();
  buckets_[open_].exchange.clear();
}

void GradientSums::await() {
  flush();
  Bucket& last = buckets_[1 - open_];
  last.exchange.wait();
  last.exchange.clear();
}

void GradientSums::give_all(std::span<const HostView> gradients) {
  await();
  for (size_t i = 0; i < gradients_.size(); ++i)
    if (gradients_[i].cuts != nullptr) require_same_type(i, gradients[i].dtype);
  Bucket& bucket = buckets_[open_];
  const auto exchange_now = [&] {
    if (bucket.exchange.is_empty()) return;
    bucket.exchange.run();
    bucket.exchange.clear();
  };
  for (size_t i = gradients_.size(); i-- > 0;) {  // as backward makes them
    if (gradients_[i].cuts == nullptr) continue;
    const DType dtype = gradients[i].dtype;
    if (!fits(bucket, i, dtype, bucket_bytes_)) exchange_now();
    add(bucket, i, dtype, gradients[i].data);
  }
  exchange_now();
}

void GradientSums::require_all_given() const {
  const auto is_missing = [this](size_t i) { return gradients_[i].cuts != nullptr && given_[i].times == 0; };
  int64_t missing = 0;
  size_t first = 0;
  for (size_t i = gradients_.size(); i-- > 0;) {
    if (!is_missing(i)) continue;
    ++missing;
    first = i;
  }
  if (missing == 0) return;
  Error error(Code::wrong_state,
              text("sharded optimizer: ", missing, " gradients were not given for this step: ", first, ", \"", gradients_[first].name, "\"",
                   missing > 1 ? ", .." : "", "; give zeros for a parameter that was not used in this step"));
  error.place.tensor = gradients_[first].name;
  throw error;
}

void GradientSums::finish() {
  await();
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const Gradient& of = gradients_[i];
    if (of.cuts != nullptr && !how_.in_place)
      how_.settle(given_[i].dtype, static_cast<std::byte*>(of.own), nullptr, of.cuts->elements_of(how_.ranks.rank()));
    given_[i].times = 0;
  }
  has_begun_ = false;
}

}  // namespace st
