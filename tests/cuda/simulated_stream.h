// A stream of the simulated device: CUDA's own type, which is opaque to the toolkit.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

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
  std::byte* (*touchable)(const void* device) = nullptr;  // the runtime's: its memory as kernels see it, for libraries in place of NVIDIA's

  void give(std::function<void()> work) {
    if (captured) return captured->works.push_back(std::move(work));
    engine->give(*queue, std::move(work));
  }
};

namespace st::simulated {

/// One for each thread.
inline thread_local int current_device = 0;

}  // namespace st::simulated
