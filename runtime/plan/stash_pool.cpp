#include "plan/stash_pool.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

namespace st {
namespace {

bool is_before(const BufferUse& a, const BufferUse& b) { return a.from < b.from; }

/// Memory for one buffer at a time.
class SharedPlace {
 public:
  SharedPlace(int64_t begin, int64_t bytes) : begin_(begin), bytes_(bytes) {}

  int64_t begin() const { return begin_; }
  int64_t end() const { return begin_ + bytes_; }
  /// Asked in the order of the first runs of uses, until the next begin_class().
  bool is_free_in(const BufferUse& use) {
    while (next_ < taken_.size() && taken_[next_].to < use.from) ++next_;
    return (next_ == taken_.size() || taken_[next_].from > use.to) && (taken_now_.empty() || taken_now_.back().to < use.from);
  }
  void take(const BufferUse& use) { taken_now_.push_back(use); }
  void begin_class() {
    std::vector<BufferUse> all;
    std::ranges::merge(taken_, taken_now_, std::back_inserter(all), is_before);
    taken_ = std::move(all);
    taken_now_.clear();
    next_ = 0;
  }

 private:
  int64_t begin_, bytes_;
  std::vector<BufferUse> taken_, taken_now_;  // by larger buffers, and by those of this class
  size_t next_ = 0;                           // of taken_: the first one that has not ended
};

/// The places of one way to make classes of chunks.
class Pooling {
 public:
  Pooling(std::span<const std::vector<BufferUse>> uses, std::span<const int64_t> bytes) : uses_(uses), bytes_(bytes) {
    made_.begins.resize(uses.size());
    for (size_t c = 0; c < uses.size(); ++c) made_.begins[c].resize(uses[c].size());
  }

  /// Each class: a chunk and those whose buffers are smaller by at most `slack` of its bytes, the largest first.
  StashPool with_slack(double slack) {
    std::vector<size_t> chunks(uses_.size());
    std::iota(chunks.begin(), chunks.end(), size_t{0});
    std::ranges::stable_sort(chunks, std::greater(), [this](size_t c) { return bytes_[c]; });
    for (size_t first = 0, end = 0; first < chunks.size(); first = end) {
      const double least = static_cast<double>(bytes_[chunks[first]]) * (1 - slack);
      while (end < chunks.size() && static_cast<double>(bytes_[chunks[end]]) >= least) ++end;
      if (bytes_[chunks[first]] > 0) place(std::span(chunks).subspan(first, end - first), bytes_[chunks[first]]);
    }
    return std::move(made_);
  }

 private:
  struct OfChunk {
    BufferUse use;
    size_t chunk, micro_batch;
  };

  void place(std::span<const size_t> chunks, int64_t bytes) {
    std::vector<OfChunk> all;
    for (const size_t c : chunks)
      for (size_t k = 0; k < uses_[c].size(); ++k) all.push_back({uses_[c][k], c, k});
    std::ranges::stable_sort(all, is_before, &OfChunk::use);
    for (SharedPlace& place : places_) place.begin_class();
    for (const OfChunk& of : all) {
      auto place = std::ranges::find_if(places_, [&](SharedPlace& it) { return it.is_free_in(of.use); });
      if (place == places_.end()) {
        place = places_.emplace(places_.end(), made_.bytes, bytes);
        made_.bytes = place->end();
      }
      place->take(of.use);
      made_.begins[of.chunk][of.micro_batch] = place->begin();
    }
  }

  const std::span<const std::vector<BufferUse>> uses_;
  const std::span<const int64_t> bytes_;
  std::vector<SharedPlace> places_;
  StashPool made_;
};

bool are_apart_at_first(const StashPool& pool, std::span<const int64_t> bytes) {
  std::vector<int64_t> begins;
  for (size_t c = 0; c < bytes.size(); ++c)
    if (bytes[c] > 0) begins.push_back(pool.begins[c].at(0));
  std::ranges::sort(begins);
  return std::ranges::adjacent_find(begins) == begins.end();
}

}  // namespace

std::optional<StashPool> stash_pool(std::span<const std::vector<BufferUse>> uses, std::span<const int64_t> bytes) {
  std::optional<StashPool> best;
  if (uses.empty() || uses[0].empty()) return best;
  for (const double slack : {0.0, 0.0625, 0.25}) {
    StashPool pool = Pooling(uses, bytes).with_slack(slack);
    if (are_apart_at_first(pool, bytes) && (!best || pool.bytes < best->bytes)) best = std::move(pool);
  }
  return best;
}

}  // namespace st
