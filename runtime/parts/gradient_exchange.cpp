#include "parts/gradient_exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "comm/rank_facts.h"

namespace st {

void require_same_exchange(Communicator& ranks, std::span<const ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes) {
  constexpr std::string_view kThis = "data parallel";
  const std::vector<RankFact> facts = {
      {"gradients:", text(gradients.size())}, {"op", std::string(name_of(op))}, {"bucket_bytes", text(bucket_bytes)}};
  require_agreement(ranks, facts, kThis);
  const auto gradient = [&](size_t i) -> RankFact {
    return {text("gradient ", i), text("\"", gradients[i].name, "\", ", gradients[i].dtype, " of ", gradients[i].elements)};
  };
  require_agreement(ranks, gradients.size(), gradient, kThis);
}

GradientExchange::GradientExchange(Communicator& ranks, std::vector<ExchangedGradient> gradients, ReduceOp op, int64_t bucket_bytes,
                                   WorkQueue& queue)
    : gradients_(std::move(gradients)),
      how_{.ranks = ranks, .queue = queue, .workers = workers_, .op = op, .in_place = true, .gathers = true},
      bucket_of_(gradients_.size()),
      is_ready_(gradients_.size()) {
  fill_buckets(bucket_bytes);
  for (Bucket& bucket : buckets_) share_out(bucket);
  next_ = buckets_.begin();
}

/// From the last gradient on: neighbours of one type, while they fit; one of f64 by itself.
void GradientExchange::fill_buckets(int64_t bucket_bytes) {
  for (size_t i = gradients_.size(); i-- > 0;) {
    const ExchangedGradient& gradient = gradients_[i];
    const int64_t more = gradient.elements * bytes_of(gradient.dtype);
    if (buckets_.empty() || gradient.dtype == DType::f64 || gradients_[i + 1].dtype != gradient.dtype ||
        more > bucket_bytes - buckets_.back().bytes)
      buckets_.emplace_back(how_);
    Bucket& bucket = buckets_.back();
    bucket.gradients.push_back(i);
    bucket.elements += gradient.elements;
    bucket.bytes += more;
    bucket.missing += 1;
    bucket_of_[i] = &bucket;
  }
}

/// Each rank gets an even share of the bucket.
void GradientExchange::share_out(Bucket& bucket) const {
  bucket.label = gradients_[bucket.gradients.front()].name;
  if (bucket.gradients.size() > 1) bucket.label += text(" and ", bucket.gradients.size() - 1, " more");
  int64_t at = 0;  // of all elements of the bucket
  for (const size_t i : bucket.gradients) {
    const auto& [name, dtype, elements, data] = gradients_[i];
    const auto cut = [&, most = elements](int rank) { return std::clamp<int64_t>(how_.ranks.share(bucket.elements, rank) - at, 0, most); };
    bucket.exchange.add(dtype, false, data, elements, cut, nullptr, bucket.label);
    at += elements;
  }
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
  for (; next_ != buckets_.end() && next_->missing == 0; ++next_) next_->exchange.post();
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
      bucket.exchange.wait();
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

}  // namespace st
