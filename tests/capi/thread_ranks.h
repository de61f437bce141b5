// Ranks as a host creates them: one thread each, with its own communicator.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "held.h"

namespace st::test {

/// A contiguous view of a vector, with its own dims; not copyable.
template <class T>
struct Array {
  Array(st_dtype dtype, std::vector<T>& values, int64_t count)
      : dims{count}, view{dtype, 1, dims, nullptr, values.data(), count * static_cast<int64_t>(sizeof(T))} {}
  Array(st_dtype dtype, std::vector<T>& values) : Array(dtype, values, static_cast<int64_t>(values.size())) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  operator const st_view*() const { return &view; }

  int64_t dims[1];
  st_view view;
};
using Floats = Array<float>;

/// Cancels the context's calls repeatedly, since the intended call may not have begun yet.
inline void cancel_until(const std::atomic<bool>& has_ended, st_context* context) {
  while (!has_ended) {
    EXPECT_TRUE(works(st_context_cancel(context)));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class ThreadRanks {
 public:
  /// A test that hangs ends at this deadline and fails.
  explicit ThreadRanks(int n, int64_t deadline_milliseconds = 20000) {
    EXPECT_TRUE(works(st_context_create(nullptr, context.out())));
    auto options = filled(st_communicator_options_init);
    options.deadline_milliseconds = deadline_milliseconds;
    std::vector<st_communicator*> made(static_cast<size_t>(n));
    EXPECT_TRUE(works(st_communicator_local(context, n, &options, made.data())));
    for (st_communicator* one : made) *ranks.emplace_back().out() = one;
  }

  int size() const { return static_cast<int>(ranks.size()); }
  st_communicator* operator[](int rank) const { return ranks[static_cast<size_t>(rank)]; }

  /// Runs act(rank, communicator) on each rank's own thread.
  void each(const std::function<void(int, st_communicator*)>& act) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back([&act, rank, own = (*this)[rank]] { act(rank, own); });
    for (std::thread& thread : threads) thread.join();
  }

  HeldContext context;
  std::vector<HeldCommunicator> ranks;
};

}  // namespace st::test
