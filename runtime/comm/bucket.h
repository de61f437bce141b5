// Scattered memory that ranks exchange by one collective, such as a bucket of gradients: by owning rank, and where the sums go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace st {

/// Filled once, or again for each collective; then it allocates only where it grows. Borrows the communicator and all memory. reduce() and
/// gather() are Communicator's reduce_shards() and gather_shards().
class Bucket {
 public:
  explicit Bucket(Communicator& ranks) : ranks_(ranks), owned_(static_cast<size_t>(ranks.size())), parts_(owned_.size()) {}
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  Communicator& ranks() const { return ranks_; }
  void clear() {
    for (size_t rank = 0; rank < owned_.size(); ++rank) {
      owned_[rank].clear();
      parts_[rank] = {};
    }
    into_.clear();
  }
  /// The next call of add() for each rank, and the calls for the sums after it, throw nothing. Until then throws std::bad_alloc.
  void make_room() {
    const auto grow = [](std::vector<Communicator::Shard>& list) {
      if (list.capacity() == list.size()) list.reserve(2 * list.size() + 1);
    };
    for (size_t rank = 0; rank < owned_.size(); ++rank) {
      grow(owned_[rank]);
      parts_[rank] = owned_[rank];
    }
    grow(into_);
  }
  /// Elements that a rank owns.
  void add(int owner, void* data, int64_t elements) {
    const auto rank = static_cast<size_t>(owner);
    owned_[rank].push_back({data, elements});
    parts_[rank] = owned_[rank];
  }
  /// Where the sums of this rank's own elements go, in order.
  void add_sum(void* data, int64_t elements) { into_.push_back({data, elements}); }
  void sum_into(void* data, int64_t elements) { into_.assign(1, {data, elements}); }
  void sum_in_place() { into_ = owned_[static_cast<size_t>(ranks_.rank())]; }

  Communicator::Shards of(int rank) const { return parts_[static_cast<size_t>(rank)]; }
  Communicator::Shards own() const { return of(ranks_.rank()); }

  void reduce(DType dtype, SumType sums, int contributors, bool adds, std::string_view label) const {
    ranks_.reduce_shards(parts_, into_, dtype, sums, contributors, adds, label);
  }
  void gather(DType dtype, std::string_view label) const { ranks_.gather_shards(parts_, dtype, label); }

 private:
  Communicator& ranks_;
  std::vector<std::vector<Communicator::Shard>> owned_;  // by owning rank
  std::vector<Communicator::Shards> parts_;              // views of owned_
  std::vector<Communicator::Shard> into_;
};

}  // namespace st
