// The tests that every transport between ranks passes: a new one adds INSTANTIATE_TEST_SUITE_P(Name, EveryGroup, Values(kind)).
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/transport.h"

namespace st {

/// The ends of a new group, made by threads of this process.
struct GroupKind {
  std::string name;
  std::function<std::vector<std::unique_ptr<Transport>>(int size)> make;
  int most = 8;  // ranks, where more would take too long: larger groups are left out
};
inline void PrintTo(const GroupKind& kind, std::ostream* out) { *out << kind.name; }

/// Calls act(rank) on a thread each, and throws what one of them has thrown.
inline void for_each_rank(int size, const std::function<void(int rank)>& act) {
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        act(rank);
      } catch (...) {
        thrown[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& one : thrown)
    if (one) std::rethrow_exception(one);
}

/// What each rank has thrown; null: nothing.
using Outcomes = std::vector<std::exception_ptr>;

/// Calls rank(communicator) on a thread each.
inline Outcomes outcomes_of(std::vector<std::unique_ptr<Transport>> ends, const CommunicatorOptions& options,
                            const std::function<void(Communicator&)>& rank) {
  Outcomes outcomes(ends.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ends.size(); ++r)
    threads.emplace_back([&, r, end = std::move(ends[r])]() mutable {
      try {
        Communicator group(std::move(end), options);
        rank(group);
      } catch (...) {
        outcomes[r] = std::current_exception();
      }
    });
  for (auto& thread : threads) thread.join();
  return outcomes;
}

class EveryGroup : public testing::TestWithParam<GroupKind> {
 protected:
  /// None of them may throw.
  void run(int size, const std::function<void(Communicator&)>& rank, const CommunicatorOptions& options = {}) {
    if (size > GetParam().most) return;
    for (const auto& outcome : outcomes(size, rank, options))
      if (outcome) std::rethrow_exception(outcome);
  }
  Outcomes outcomes(int size, const std::function<void(Communicator&)>& rank, const CommunicatorOptions& options = {}) {
    return outcomes_of(GetParam().make(size), options, rank);
  }
};

}  // namespace st
