// Ranks as threads that share a delayed device.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"
#include "delayed_backend.h"
#include "refusal.h"

namespace st {

inline std::unique_ptr<DelayedBackend> delayed(Order order, Planted planted = Planted::nothing) {
  const auto source = std::make_shared<MemorySource>();
  return std::make_unique<DelayedBackend>(make_cpu_backend(source), source, order, planted);
}

/// Numbers of many magnitudes, whose sum depends on the order; other ones for each seed.
inline std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    const auto sixteenth = static_cast<float>(seed >> 20) / 4096.0F - 0.5F;
    all.push_back(std::ldexp(sixteenth, static_cast<int>(seed >> 8 & 15) - 8));
  }
  return all;
}

/// Calls rank(communicator) on a thread each; null: it returned.
inline std::vector<std::exception_ptr> on_ranks(int size, const std::function<void(DirectExchange&)>& rank, double deadline = 20) {
  std::vector<std::exception_ptr> caught(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Transport>> ends = make_thread_group(size);
  for (size_t r = 0; r < caught.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        DirectExchange group(std::move(ends[r]), {.deadline = deadline});
        rank(group);
      } catch (...) {
        caught[r] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return caught;
}

inline void expect_none(const std::vector<std::exception_ptr>& caught) {
  for (const std::exception_ptr& each : caught) EXPECT_EQ(error_of(each).code(), Code::ok) << error_of(each).message();
}

}  // namespace st
