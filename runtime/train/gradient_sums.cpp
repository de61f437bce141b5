#include "train/gradient_sums.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/combine.h"
#include "base/error.h"
#include "base/float_mode.h"

namespace st {
namespace {

bool is_narrow(DType dtype) { return bytes_of(dtype) == 2; }

}  // namespace

GradientSums::GradientSums(Communicator& ranks, Workers& workers, std::vector<Gradient> gradients, const Options& options,
                           std::shared_ptr<MemorySource> memory, GradientExchange::Post post)
    : ranks_(ranks),
      workers_(workers),
      gradients_(std::move(gradients)),
      options_(options),
      memory_(std::move(memory)),
      post_(std::move(post)),
      given_(gradients_.size()) {
  for (Bucket& bucket : buckets_) {
    bucket.owned.resize(static_cast<size_t>(ranks.size()));
    bucket.parts.resize(bucket.owned.size());
  }
}

bool GradientSums::fits(const Bucket& bucket, size_t gradient, DType dtype, int64_t most) const {
  return bucket.entries.empty() ||
         (bucket.dtype == dtype && bucket.adds == (given_[gradient].times > 0) && bytes(gradient, dtype) <= most - bucket.bytes);
}

void GradientSums::add(Bucket& bucket, size_t gradient, DType dtype, std::byte* data) {
  bucket.entries.push_back({gradient, data});
  bucket.dtype = dtype;
  bucket.adds = given_[gradient].times > 0;
  bucket.bytes += bytes(gradient, dtype);
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
  if (bucket.entries.empty()) {
    int64_t all = 0;
    for (size_t i = 0; i < gradients_.size(); ++i) all += gradients_[i].cuts == nullptr ? 0 : bytes(i, view.dtype);
    const int64_t need = std::max(more, std::min(options_.bucket_bytes, all));
    if (bucket.room.size() < need) bucket.room = Memory(need, memory_, MemoryRole::buckets);
  }
  std::byte* const copy = bucket.room.data() + bucket.bytes;
  if (more > 0) std::memcpy(copy, view.data, static_cast<size_t>(more));
  add(bucket, gradient, view.dtype, copy);
  if (bucket.bytes >= options_.bucket_bytes) try_flush();
}

/// Where there is no memory for it now, the next call does it: the gradient has been taken. What an exchange has failed with is thrown.
void GradientSums::try_flush() {
  Bucket& full = buckets_[open_];
  if (full.entries.empty()) return;
  try {
    send(full);
  } catch (const std::bad_alloc&) {
    return;
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory && error.code() != Code::unavailable) throw;
    return;
  }
  open_other();
}

/// Sends the gradients given so far and opens the other, empty bucket.
void GradientSums::flush() {
  Bucket& full = buckets_[open_];
  if (full.entries.empty()) return;
  send(full);
  open_other();
}

void GradientSums::send(Bucket& full) {
  share_out(full);
  post_([this, &full] { exchange(full); }, full.exchanged);
}

void GradientSums::open_other() {
  open_ = 1 - open_;
  buckets_[open_].exchanged.wait(-1);
}

void GradientSums::await() {
  flush();
  for (const Bucket& bucket : buckets_) bucket.exchanged.wait(-1);
}

void GradientSums::give_all(std::span<const HostView> gradients) {
  await();
  for (size_t i = 0; i < gradients_.size(); ++i)
    if (gradients_[i].cuts != nullptr) require_same_type(i, gradients[i].dtype);
  Bucket& bucket = buckets_[open_];
  const auto exchange_now = [&] {
    if (bucket.entries.empty()) return;
    share_out(bucket);
    exchange(bucket);
  };
  for (size_t i = gradients_.size(); i-- > 0;) {  // as backward makes them
    if (gradients_[i].cuts == nullptr) continue;
    const DType dtype = gradients[i].dtype;
    if (!fits(bucket, i, dtype, options_.bucket_bytes)) exchange_now();
    add(bucket, i, dtype, static_cast<std::byte*>(gradients[i].data));
  }
  exchange_now();
}

Communicator::Shard GradientSums::piece(const Bucket& bucket, const Entry& entry, size_t rank) const {
  const Cuts& cuts = *gradients_[entry.gradient].cuts;
  const auto r = static_cast<int64_t>(rank);
  return {entry.data + cuts[r] * bytes_of(bucket.dtype), cuts.elements_of(r)};
}

/// All that its exchange needs, by the thread of the calls, whose memory serves.
void GradientSums::share_out(Bucket& bucket) {
  for (auto& owned : bucket.owned) owned.clear();
  bucket.into.clear();
  int64_t own = 0;
  for (const Entry& entry : bucket.entries) {
    for (size_t r = 0; r < bucket.owned.size(); ++r)
      if (const auto part = piece(bucket, entry, r); part.elements > 0) bucket.owned[r].push_back(part);
    const auto [data, elements] = piece(bucket, entry, static_cast<size_t>(ranks_.rank()));
    if (elements > 0) bucket.into.push_back({options_.in_place ? data : gradients_[entry.gradient].own, elements});
    own += elements;
  }
  std::ranges::copy(bucket.owned, bucket.parts.begin());
  if (!options_.in_place || !is_narrow(bucket.dtype)) return;
  narrow_sums_.resize(std::max(narrow_sums_.size(), static_cast<size_t>(own)));  // in place they would be wider than what they replace
  bucket.into.assign(1, {narrow_sums_.data(), own});
}

/// On whatever thread does the work. Leaves it empty.
void GradientSums::exchange(Bucket& bucket) {
  if (!options_.in_place || ranks_.size() > 1)  // of one rank alone, they are the sums
    ranks_.reduce_shards(bucket.parts, bucket.into, bucket.dtype, ranks_.size(), bucket.adds,
                         gradients_[bucket.entries.front().gradient].name);
  if (options_.in_place && ranks_.size() > 1) settle_in_place(bucket);
  bucket.entries.clear();
  bucket.bytes = 0;
}

void GradientSums::settle_in_place(const Bucket& bucket) {
  float* apart = narrow_sums_.data();
  for (const Entry& entry : bucket.entries) {
    const auto [data, elements] = piece(bucket, entry, static_cast<size_t>(ranks_.rank()));
    auto* const to = static_cast<std::byte*>(data);
    if (!is_narrow(bucket.dtype)) {
      settle(bucket.dtype, to, to, elements);
      continue;
    }
    settle(bucket.dtype, reinterpret_cast<std::byte*>(apart), to, elements);
    apart += elements;
  }
}

/// Sums, or the means that they become, to where they are wanted as `dtype`; `to` null: there, in their own type.
void GradientSums::settle(DType dtype, std::byte* sums, std::byte* to, int64_t n) const {
  constexpr int64_t kRun = 4096;  // elements
  const bool divides = options_.op == ReduceOp::mean && ranks_.size() > 1;
  if (n == 0 || (!divides && !is_narrow(dtype))) return;
  const FloatMode mode;
  workers_.run_range(n, kRun, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    std::byte* const from = sums + begin * sum_bytes_of(dtype);
    if (divides) divide(dtype, ranks_.size(), from, count);
    if (!is_narrow(dtype)) return;
    std::array<uint16_t, kRun> rounded;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before it is read
    auto* const narrowed = to == nullptr ? reinterpret_cast<std::byte*>(rounded.data()) : to + begin * bytes_of(dtype);
    narrow(dtype, from, narrowed, count);
    if (to == nullptr) widen(dtype, narrowed, from, count);
  });
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
    if (of.cuts != nullptr && !options_.in_place)
      settle(given_[i].dtype, static_cast<std::byte*>(of.own), nullptr, of.cuts->elements_of(ranks_.rank()));
    given_[i].times = 0;
  }
  has_begun_ = false;
}

}  // namespace st
