// A stream of the simulated device: CUDA's own type, which is opaque to the toolkit.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "device/device_memory.h"
#include "device/stream_engine.h"

/// Work that a stream was given while it was captured.
struct CUgraph_st {
  std::vector<std::function<void()>> works;
  int device = 0;
};

struct CUstream_st {
  std::shared_ptr<st::StreamEngine> engine;
  std::shared_ptr<st::StreamEngine::Queue> queue = engine->make_queue();
  int device = -1;  // -1: of a test that has no device, whose kernels get memory of the host's
  std::unique_ptr<CUgraph_st> captured = {};
  /// For libraries that are loaded, whose own copies of these functions have other state: give(), and an address as kernels of this stream
  /// follow it. (fake_nccl.cpp calls give() itself: an engine's state is in the stream.)
  void (*given_by_library)(CUstream_st&, std::function<void()>) = [](CUstream_st& own, std::function<void()> work) {
    own.give(std::move(work));
  };
  void* (*followed)(const CUstream_st&, const void*) = [](const CUstream_st& own, const void* place) {
    const st::Address at = {reinterpret_cast<uintptr_t>(place)};
    return reinterpret_cast<void*>(own.device < 0 ? at.at : st::device_memory::for_kernels(at).at);
  };

  void give(std::function<void()> work) {
    if (captured) return captured->works.push_back(std::move(work));
    engine->give(*queue, std::move(work));
  }
};

namespace st::simulated {

/// One for each thread.
inline thread_local int current_device = 0;

}  // namespace st::simulated
