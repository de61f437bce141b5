#include "parts/gradient_exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/combine.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/text.h"

namespace st {

GradientExchange::GradientExchange(Communicator& ranks, std::vector<ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes,
                                   Post post)
    : ranks_(ranks), gradients_(std::move(gradients)), op_(op), post_(std::move(post)) {
  bucket_of_.resize(gradients_.size());
  is_ready_.resize(gradients_.size());
  fill_buckets(bucket_bytes);
  int64_t most = 0;
  for (Bucket& bucket : buckets_) {
    share_out(bucket);
    if (bucket.dtype != DType::f32 && bucket.dtype != DType::f64) most = std::max(most, ranks_.share(bucket.elements, 1));
  }
  sums_.resize(static_cast<size_t>(most));
  next_ = buckets_.begin();
}

/// From the last gradient on: neighbours of one type, while they fit.
void GradientExchange::fill_buckets(int64_t bucket_bytes) {
  int64_t bytes = 0;
  for (size_t i = gradients_.size(); i-- > 0;) {
    const ExchangedGradient& gradient = gradients_[i];
    const int64_t more = gradient.elements * bytes_of(gradient.dtype);
    if (buckets_.empty() || buckets_.back().dtype != gradient.dtype || more > bucket_bytes - bytes) {
      Bucket& made = buckets_.emplace_back();
      made.dtype = gradient.dtype;
      bytes = 0;
    }
    Bucket& bucket = buckets_.back();
    bucket.gradients.push_back(i);
    bucket.elements += gradient.elements;
    bucket.missing += 1;
    bucket_of_[i] = &bucket;
    bytes += more;
  }
  for (Bucket& bucket : buckets_) {
    bucket.label = gradients_[bucket.gradients.front()].name;
    if (bucket.gradients.size() > 1) bucket.label += text(" and ", bucket.gradients.size() - 1, " more");
  }
}

void GradientExchange::share_out(Bucket& bucket) const {
  const auto size = static_cast<size_t>(ranks_.size());
  bucket.owned.resize(size);
  int64_t at = 0;  // of all elements of the bucket
  size_t owner = 0;
  for (const size_t i : bucket.gradients) {
    const ExchangedGradient& gradient = gradients_[i];
    for (int64_t done = 0; done < gradient.elements;) {
      while (at == ranks_.share(bucket.elements, static_cast<int>(owner) + 1)) ++owner;
      const int64_t count = std::min(gradient.elements - done, ranks_.share(bucket.elements, static_cast<int>(owner) + 1) - at);
      bucket.owned[owner].push_back({static_cast<std::byte*>(gradient.data) + done * bytes_of(gradient.dtype), count});
      done += count;
      at += count;
    }
  }
  bucket.parts.assign(bucket.owned.begin(), bucket.owned.end());
}

void GradientExchange::ready(int64_t gradient) {
  check(gradient >= 0 && gradient < std::ssize(gradients_), "data parallel: gradient ", gradient, " must be in [0, ", gradients_.size(),
        ")");
  if (is_local_) return;
  const auto i = static_cast<size_t>(gradient);
  if (is_ready_[i]) {
    Error error(Code::wrong_state, text("data parallel: gradient ", gradient, ", \"", gradients_[i].name,
                                        "\", is ready twice in one step; call ready after the last use of its parameter, and synchronize "
                                        "before the next step"));
    error.place.tensor = gradients_[i].name;
    throw error;
  }
  Bucket& full = *bucket_of_[i];
  full.missing -= 1;
  is_ready_[i] = has_begun_ = true;
  post_full();
}

/// Where it throws, what is left is posted by the next call.
void GradientExchange::post_full() {
  for (; next_ != buckets_.end() && next_->missing == 0; ++next_) post_([this, &bucket = *next_] { exchange(bucket); }, next_->exchanged);
}

void GradientExchange::synchronize() {
  if (is_local_) return;
  const auto unready = std::count(is_ready_.begin(), is_ready_.end(), false);
  if (unready > 0) {
    const auto first = static_cast<size_t>(std::find(is_ready_.begin(), is_ready_.end(), false) - is_ready_.begin());
    Error error(Code::wrong_state, text("data parallel: backward has not made ", unready, " of ", gradients_.size(), " gradients: ", first,
                                        ", \"", gradients_[first].name, "\"", unready > 1 ? ", .." : "",
                                        "; for a parameter that was not used in this step, set the gradient to zero and call ready"));
    error.place.tensor = gradients_[first].name;
    throw error;
  }
  post_full();
  std::exception_ptr first;
  for (Bucket& bucket : buckets_) {
    try {
      bucket.exchanged.wait(-1);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
    bucket.missing = std::ssize(bucket.gradients);
  }
  is_ready_.assign(is_ready_.size(), false);
  next_ = buckets_.begin();
  has_begun_ = false;
  if (first) std::rethrow_exception(first);
}

void GradientExchange::set_local(bool on) {
  require(!has_begun_, Code::wrong_state, "data parallel: gradients of a step are already ready; synchronize first");
  is_local_ = on;
}

/// On whatever thread does the work.
void GradientExchange::exchange(const Bucket& bucket) {
  if (ranks_.size() == 1) return;
  if (bucket.gradients.size() == 1 || bucket.dtype == DType::f64) {
    for (const size_t i : bucket.gradients)
      ranks_.all_reduce(gradients_[i].data, gradients_[i].elements, bucket.dtype, op_, gradients_[i].name);
    return;
  }
  const auto& own = bucket.owned[static_cast<size_t>(ranks_.rank())];
  const bool is_wide = bucket.dtype == DType::f32;
  const Communicator::Shard narrow_sums{sums_.data(),
                                        ranks_.share(bucket.elements, ranks_.rank() + 1) - ranks_.share(bucket.elements, ranks_.rank())};
  const Communicator::Shards into = is_wide ? Communicator::Shards(own) : Communicator::Shards(&narrow_sums, 1);
  ranks_.reduce_shards(bucket.parts, into, bucket.dtype, ranks_.size(), false, bucket.label);
  const FloatMode mode;
  if (op_ == ReduceOp::mean)
    for (const auto& piece : into) divide(DType::f32, ranks_.size(), static_cast<std::byte*>(piece.data), piece.elements);
  const auto* sums = reinterpret_cast<const std::byte*>(sums_.data());
  for (const auto& piece : own) {
    if (is_wide) break;
    narrow(bucket.dtype, sums, static_cast<std::byte*>(piece.data), piece.elements);
    sums += piece.elements * static_cast<int64_t>(sizeof(float));
  }
  ranks_.gather_shards(bucket.parts, bucket.dtype, bucket.label);
}

}  // namespace st
