// A stream of the simulated device: CUDA's own type, which is opaque to the toolkit.
#pragma once

#include <memory>

#include "device/stream_engine.h"

struct CUstream_st {
  std::shared_ptr<st::StreamEngine> engine;
  std::shared_ptr<st::StreamEngine::Queue> queue = engine->make_queue();
  int device = -1;  // -1: of a test that has no device, whose kernels get memory of the host's
};

namespace st::simulated {

/// One for each thread.
inline thread_local int current_device = 0;

}  // namespace st::simulated
