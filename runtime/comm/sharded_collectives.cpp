// Collectives on scattered memory: a bucket of gradients, exchanged in place.
#include <algorithm>

#include "base/combine.h"
#include "base/vector_copy.h"
#include "comm/call_checks.h"
#include "comm/direct_exchange.h"
#include "comm/wire.h"

namespace st {
namespace {

int64_t length_of(Communicator::Shards pieces) {
  int64_t length = 0;
  for (const auto& piece : pieces) length += piece.elements;
  return length;
}

/// Iterates over the elements of a list of pieces in contiguous runs.
class Walk {
 public:
  Walk(Communicator::Shards pieces, int64_t width) : pieces_(pieces), width_(width) { skip_empty(); }

  int64_t together() const { return pieces_[at_].elements - done_; }
  std::byte* take(int64_t elements) {
    auto* const place = static_cast<std::byte*>(pieces_[at_].data) + done_ * width_;
    done_ += elements;
    skip_empty();
    return place;
  }

 private:
  void skip_empty() {
    for (; at_ < pieces_.size() && done_ == pieces_[at_].elements; done_ = 0) ++at_;
  }

  Communicator::Shards pieces_;
  int64_t width_;
  size_t at_ = 0;
  int64_t done_ = 0;
};

}  // namespace

void DirectExchange::reduce_shards(std::span<const Shards> parts, Shards into, DType dtype, SumType sums, int contributors, bool adds,
                                   std::string_view label) {
  CollectiveCall call{Collective::reduce_scatter, ReduceOp::sum, dtype, 0, -1, label};
  check_call(std::ssize(parts) == size() && contributors >= 1 && contributors <= size(), call, "needs ", size(), " parts and 1 to ", size(),
             " contributors, got ", parts.size(), " and ", contributors);
  check_call(is_floating(dtype), call, "the dtype must be f32, f64, bf16 or f16");
  AlikeOnAll detail;
  detail.add(contributors);
  for (const Shards part : parts) {
    call.elements += length_of(part);
    detail.add(length_of(part));
  }
  const Shards own = parts[static_cast<size_t>(rank())];
  const int64_t owned = length_of(own), width = bytes_of(dtype), own_width = sum_bytes_of(dtype, sums);
  const bool is_narrow = own_width < sum_bytes_of(dtype);
  check_call(length_of(into) == owned, call, "`into` has ", length_of(into), " elements, but this rank owns ", owned);
  wire_->in_call(call, detail.value(), [&] {
    wire_->greet_all();
    for (int step = 1; step < size() && rank() < contributors; ++step) {
      const int owner = wire_->after(step);
      for (const Shard& piece : parts[static_cast<size_t>(owner)]) wire_->post(owner, piece.data, piece.elements * width);
    }
    wire_->check_headers();
    Walk from(own, width), to(into, own_width);
    for (int64_t done = 0; done < owned;) {
      const int64_t count = std::min({from.together(), to.together(), chunk_});
      const std::byte* const mine = from.take(count);
      std::byte* const place = to.take(count);
      // Not directly there: where that is this rank's own part, rank 0's elements would overwrite it before it is read.
      if (adds && is_narrow)
        widen(dtype, place, sums_.data(), count);
      else if (adds)
        vector_copy(sums_.data(), place, static_cast<size_t>(count * own_width));
      fold(sums_.data(), mine, count, dtype, ReduceOp::sum, contributors, adds, sums);
      if (is_narrow)
        narrow(dtype, sums_.data(), place, count);
      else
        vector_copy(place, sums_.data(), static_cast<size_t>(count * own_width));
      done += count;
    }
    wire_->wait_until_read();
  });
}

void DirectExchange::gather_shards(std::span<const Shards> parts, DType dtype, std::string_view label) {
  CollectiveCall call{Collective::all_gather, ReduceOp::sum, dtype, 0, -1, label};
  check_call(std::ssize(parts) == size(), call, "needs one part per rank, ", size(), ", got ", parts.size());
  AlikeOnAll detail;
  for (const Shards part : parts) {
    call.elements += length_of(part);
    detail.add(length_of(part));
  }
  const int64_t width = bytes_of(dtype);
  wire_->in_call(call, detail.value(), [&] {
    wire_->greet_all();
    for (int step = 1; step < size(); ++step)
      for (const Shard& piece : parts[static_cast<size_t>(rank())]) wire_->post(wire_->after(step), piece.data, piece.elements * width);
    wire_->check_headers();
    for (int step = 1; step < size(); ++step) {
      const int owner = wire_->after(step);
      for (const Shard& piece : parts[static_cast<size_t>(owner)]) wire_->fetch(owner, piece.data, piece.elements * width);
    }
    wire_->wait_until_read();
  });
}

}  // namespace st
