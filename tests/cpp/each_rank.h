// Runs ranks as threads of a test.
#pragma once

#include <functional>
#include <scaletrain.hpp>
#include <thread>
#include <vector>

namespace scaletrain::test {

/// Calls act(rank) on a thread for each rank.
inline void on_ranks(const Context& context, int32_t n, const std::function<void(const Communicator&)>& act) {
  const std::vector<Communicator> ranks = Communicator::local(context, n);
  std::vector<std::thread> threads;
  for (const Communicator& rank : ranks) threads.emplace_back([&] { act(rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace scaletrain::test
