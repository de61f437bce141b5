// One rank of a benchmark of collectives. Orders, clock and checks are the same for every implementation, so peers are comparable.
// Independent of this library: the peers' programs (tests/bench/collective_gloo.cpp, collective_openmpi.cpp) are built from it, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

enum class Exchange { all_reduce, reduce_scatter, all_gather };
inline constexpr const char* kExchanges[] = {"all_reduce", "reduce_scatter", "all_gather"};  // by number

/// Sums of f32. Rank r owns the elements [share_begin(r), share_begin(r + 1)).
class CollectiveCalls {
 public:
  CollectiveCalls(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~CollectiveCalls() = default;
  CollectiveCalls(const CollectiveCalls&) = delete;
  CollectiveCalls& operator=(const CollectiveCalls&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int64_t share_begin(int64_t elements, int rank) const {
    const int64_t rest = elements % size_;
    return elements / size_ * rank + (rank < rest ? rank : rest);
  }

  virtual bool has(Exchange) const { return true; }
  virtual void all_reduce(float* data, int64_t elements) = 0;  // in place
  virtual void reduce_scatter(const float* whole, float* own, int64_t elements) = 0;
  virtual void all_gather(const float* own, float* whole, int64_t elements) = 0;

 private:
  int rank_, size_;
};

/// Seconds per call over the calls of one order.
struct CallTimes {
  double median = 0, p10 = 0, p90 = 0;
};

/// Reads orders from `folder`/order.<rank>, one line each: "all_reduce ELEMENTS CALLS SEED". Writes one answer for each to
/// `folder`/answers: the rank, then
/// - "times MEDIAN P10 P90",
/// - "none" if there is no such collective,
/// - "error WHY", after which it ends.
/// Sleeps while it waits for orders. Returns when the writer has closed the pipe.
void serve_collectives(CollectiveCalls& calls, const std::string& folder);

std::string order_pipe(const std::string& folder, int rank);
std::string answer_pipe(const std::string& folder);

}  // namespace cli
