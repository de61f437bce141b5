// One rank of a benchmark of collectives: the same orders, clock and checks whoever makes the calls, so that peers can be compared. Knows
// nothing of this library: the peers' programs (tests/bench/collective_gloo.cpp, collective_openmpi.cpp) are made from it, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

enum class Exchange { all_reduce, reduce_scatter, all_gather };
inline constexpr const char* kExchanges[] = {"all_reduce", "reduce_scatter", "all_gather"};  // by number

/// Of f32, summed. A rank's share of so many elements is [share_begin(rank), share_begin(rank + 1)).
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

/// Seconds of a call, over those of one order.
struct CallTimes {
  double median = 0, p10 = 0, p90 = 0;
};

/// Does what comes from `folder`/order.<rank>, "all_reduce ELEMENTS CALLS SEED" a line, and answers each in `folder`/answers: the rank, and
/// "times MEDIAN P10 P90", "none" where it has no such collective, or "error WHY", which ends it. Waits for orders without using a core.
/// Returns when nobody is left to give orders.
void serve_collectives(CollectiveCalls& calls, const std::string& folder);

std::string order_pipe(const std::string& folder, int rank);
std::string answer_pipe(const std::string& folder);

}  // namespace cli
