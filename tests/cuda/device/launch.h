// The same names as runtime/backend/cuda/device/launch.h: a stream is a queue of tests/device/stream_engine.h.
#pragma once

#include <cstdint>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "device/stream_engine.h"
#include "grid_engine.h"

namespace st::simulated {

struct SimulatedStream {
  StreamEngine& engine;
  StreamEngine::Queue& queue;
};

}  // namespace st::simulated

namespace st::cuda {

using StreamHandle = simulated::SimulatedStream*;

struct Grid {
  int64_t blocks;
  int threads;
};

template <class... Parameters, class... Arguments>
void launch(StreamHandle stream, Grid grid, void (*kernel)(Parameters...), Arguments... arguments) {
  if (grid.blocks == 0) return;
  require(grid.blocks <= std::numeric_limits<int32_t>::max(), Code::internal, "cuda: a grid of ", grid.blocks, " blocks");
  stream->engine.give(stream->queue, [kernel, grid, values = std::tuple<Parameters...>(arguments...)] {
    simulated::run_grid([&] { std::apply(kernel, values); }, grid.blocks, grid.threads);
  });
}

}  // namespace st::cuda
