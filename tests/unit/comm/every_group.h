// The tests that every transport between ranks passes: a new one adds INSTANTIATE_TEST_SUITE_P(Name, EveryGroup, Values(kind)).
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "comm/direct_exchange.h"
#include "comm/transport.h"
#include "shared_job.h"

namespace st {

/// The ends of a new group, made by threads of this process.
struct GroupKind {
  std::string name;
  std::function<std::vector<std::unique_ptr<Transport>>(int size)> make;
  int most = 8;  // larger groups would take too long and are left out
};
inline void PrintTo(const GroupKind& kind, std::ostream* out) { *out << kind.name; }

/// What one rank waits for and others cause: by count, not by a clock.
class Signal {
 public:
  void raise() {
    ++times_;
    times_.notify_all();
  }
  void await(int times = 1) const {
    for (int seen = times_; seen < times; seen = times_) times_.wait(seen);
  }

 private:
  std::atomic<int> times_{0};
};

/// Raises a signal in its destructor.
class RaisesAtEnd {
 public:
  explicit RaisesAtEnd(Signal& signal) : signal_(signal) {}
  ~RaisesAtEnd() { signal_.raise(); }
  RaisesAtEnd(const RaisesAtEnd&) = delete;
  RaisesAtEnd& operator=(const RaisesAtEnd&) = delete;

 private:
  Signal& signal_;
};

/// The exception of each rank; null: none.
using Outcomes = std::vector<std::exception_ptr>;

/// Calls rank(communicator) on a thread each.
inline Outcomes outcomes_of(std::vector<std::unique_ptr<Transport>> ends, const CommunicatorOptions& options,
                            const std::function<void(DirectExchange&)>& rank) {
  return caught_on_ranks(static_cast<int>(ends.size()), [&](int r) {
    DirectExchange group(std::move(ends[static_cast<size_t>(r)]), options);
    rank(group);
  });
}

class EveryGroup : public testing::TestWithParam<GroupKind> {
 protected:
  /// Fails the test if any rank throws.
  void run(int size, const std::function<void(DirectExchange&)>& rank, const CommunicatorOptions& options = {}) {
    if (size > GetParam().most) return;
    rethrow_first(outcomes(size, rank, options));
  }
  Outcomes outcomes(int size, const std::function<void(DirectExchange&)>& rank, const CommunicatorOptions& options = {}) {
    return outcomes_of(GetParam().make(size), options, rank);
  }
};

}  // namespace st
