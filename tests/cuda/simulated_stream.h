// A stream of the simulated device: CUDA's own type, which is opaque to the toolkit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "device/device_memory.h"
#include "device/stream_engine.h"

/// Work that streams were given while they were captured, in that order, which is one that their events allow: a fork that lacks a wait
/// computes the same here.
struct CUgraph_st {
  std::vector<std::function<void()>> works;
  int device = 0;
};

struct CUstream_st;

namespace st::simulated {

/// One under way: of the stream where it began, and of those that have joined it by waiting for its events.
struct Capture {
  /// By stream: how many of its works and waits.
  using Reached = std::map<const CUstream_st*, int64_t>;

  CUstream_st* origin;
  std::unique_ptr<CUgraph_st> graph;
  const std::thread::id thread = std::this_thread::get_id();
  std::map<CUstream_st*, Reached> streams = {{origin, {}}};  // what comes before the next work of each
  bool is_valid = true;                                      // until an error

  void add(CUstream_st* stream, std::function<void()> work) {
    if (!is_valid) return;
    ++streams[stream][stream];
    graph->works.push_back(std::move(work));
  }
  /// A fork without any work counts as one that is to be joined too.
  void wait(CUstream_st* stream, const Reached& event) {
    Reached& own = streams[stream];
    for (const auto& [of, count] : event) own[of] = std::max(own[of], count);
    ++own[stream];
  }
  bool is_joined() const {
    const Reached& end = streams.at(origin);
    for (const auto& [stream, own] : streams) {
      const auto seen = end.find(stream);
      const auto last = own.find(stream);
      if (last != own.end() && (seen == end.end() || seen->second < last->second)) return false;
    }
    return true;
  }
};

}  // namespace st::simulated

struct CUstream_st {
  std::shared_ptr<st::StreamEngine> engine;
  std::shared_ptr<st::StreamEngine::Queue> queue = engine->make_queue();
  int device = -1;  // -1: of a test that has no device, whose kernels get memory of the host's
  std::shared_ptr<st::simulated::Capture> capture = {};
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
    if (capture) return capture->add(this, std::move(work));
    engine->give(*queue, std::move(work));
  }
};
