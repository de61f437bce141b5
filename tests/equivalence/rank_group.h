// A host's ranks: each on its own thread with its communicator.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"

namespace st {

/// Calls part(rank, communicator) for each rank; an exception fails the test and ends the group, so that no rank waits.
inline void each_of_group(int size, const std::function<void(int, Communicator&)>& part) {
  std::vector<std::unique_ptr<Transport>> ends = make_thread_group(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&part, rank, end = std::move(ends[static_cast<size_t>(rank)])]() mutable {
      CommunicatorOptions options;
      options.deadline = 20;
      DirectExchange own(std::move(end), options);
      try {
        part(rank, own);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
        own.abort(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace st
