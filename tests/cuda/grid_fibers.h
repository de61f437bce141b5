// The engine's own state (grid_engine.cpp, and hopper_engine.cpp for the asynchronous proxy).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/philox.h"
#include "device/race_identity.h"
#include "grid_engine.h"
#include "hopper_engine.h"
#include "unseen_section.h"

// ThreadSanitizer's: accesses that it is told of.
extern "C" {
__attribute__((weak)) void __tsan_read_range(void* place, unsigned long bytes);
__attribute__((weak)) void __tsan_write_range(void* place, unsigned long bytes);
}

namespace st::simulated {

constexpr unsigned kNoOrder = 1;  // a switch of ThreadSanitizer's that orders nothing

/// No call of memcpy, which ThreadSanitizer would take for an access of the kernel's.
inline void pass_on(void* to, const void* from, size_t bytes) {
  if (bytes == 4) {
    __builtin_memcpy(to, from, 4);
  } else if (bytes == 8) {
    __builtin_memcpy(to, from, 8);
  } else {
    for (size_t i = 0; i < bytes; ++i) static_cast<volatile std::byte*>(to)[i] = static_cast<const volatile std::byte*>(from)[i];
  }
}

struct Engine;
struct Fiber;

/// Random numbers whose seed costs nothing: each grid has one.
struct RandomOrder {
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return mix(seed, drawn++); }
  uint64_t seed = 0, drawn = 0;
};

/// An edge orders identities: threads, and kProxy after it their asynchronous proxies.
using Edge = char*;
constexpr int kProxy = 2;

/// Threads of a block or warp that wait for each other. Its two edges take turns, so that who runs ahead to the next call orders nothing
/// before this one.
struct Gathering {
  int arrived = 0, line = 0, turn = 0;
  Fiber* waiting = nullptr;  // the first of a list
  char edges[2 + kProxy] = {};
};

/// A thread's copies that have not been made, and the ends of the groups.
struct Copies {
  std::vector<Copy> all;
  std::vector<size_t> groups;
  size_t made = 0;
  void clear() {
    all.clear();
    groups.clear();
    made = 0;
  }
};

/// A product of tiles (hopper.h), as far as it is this thread's.
struct TileProduct {
  float* sums;
  uint64_t a, b;
  bool adds;
};

struct Fiber : Place {
  Engine* engine = nullptr;
  std::byte* stack = nullptr;  // from the thread's begin to its end
  void *top = nullptr, *race = nullptr, *asan = nullptr;
  void* proxy = nullptr;  // the identity of its asynchronous proxy; null: nobody asks
  bool has_ended = false;
  Fiber* next_waiting = nullptr;
  int line = 0;
  const char* where = "";
  const uint64_t* barrier = nullptr;  // at which it waits for a phase
  bool is_fenced = false;
  std::vector<void*> atomics;
  Copies copies;
  std::vector<TileProduct> products;
  std::vector<std::vector<TileProduct>> product_groups;  // under way
};

struct Warp : Gathering {
  alignas(16) std::byte given[2][kLanes][kExchanged];
  const Fragments* fragments[kLanes];
};

/// A grid's, on the heap: ThreadSanitizer forgets the clocks of memory that is freed, else they would order this grid before the next one.
struct Edges {
  char begin = 0, end = 0;
};

/// An array that the threads of a block share.
struct SharedArray {
  SharedArray(size_t count, size_t alignment, size_t address)
      : bytes(static_cast<std::byte*>(::operator new (count, std::align_val_t{alignment})), Delete{alignment}), size(count), at(address) {}
  struct Delete {
    size_t alignment;
    void operator()(std::byte* place) const { ::operator delete (place, std::align_val_t{alignment}); }
  };
  std::unique_ptr<std::byte, Delete> bytes;  // of its own, so that AddressSanitizer sees an access after its end
  size_t size, at;                           // at: its shared address
};

/// A copy of the copy engine's under way.
struct BulkCopy {
  std::vector<Copy> chunks;
  uint64_t* barrier;
  int bytes;
  std::unique_ptr<char> begin;  // an edge
};

struct Block {
  int alive = 0;
  size_t shared_bytes = 0;
  Gathering all;
  std::vector<Warp> warps;
  std::map<const void*, SharedArray> shared;
  // For the asynchronous proxy.
  std::vector<BulkCopy> copies;
  std::vector<void*> copiers;  // identities that take turns
  size_t copies_made = 0;
  std::vector<Fiber*> at_barriers;
  std::map<int, Gathering> groups;  // of warps, by number
  char product_edges[kMostThreads / 128][1 + kProxy] = {};
};

struct Identity {
  void* race;
  bool is_threads;  // not that of an asynchronous proxy or of a copy
};

/// One for each thread of the operating system.
struct Engine {
  ~Engine();
  std::vector<Fiber> fibers;
  std::vector<Fiber*> ready;  // that neither have ended nor wait
  RandomOrder random;
  std::vector<std::byte*> stacks;    // that no thread has: the last to be given back is the next to be taken, and still in the cache
  std::deque<Identity> ended;        // of this grid
  std::vector<void*> idle;           // identities of threads of earlier grids, for the next ones
  const void* idle_after = nullptr;  // the identity that ran those grids, of which `idle` knows nothing that it does not know
  uint64_t idle_since = 0;           // identities_ended at that time
  Fiber caller;                      // of run_grid
  const void* callers_bottom = nullptr;
  size_t callers_bytes = 0;
  Fiber *now = nullptr, *before = nullptr;
  Fiber* ended_last = nullptr;  // still has its stack
  Block* block = nullptr;
  const std::function<void()>* body = nullptr;
  size_t launch_shared = 0;  // bytes, of each block
  std::exception_ptr error;
  Edges* edges = nullptr;
  bool is_late = false;  // the copy engine and products do nothing before somebody waits for it
};

/// Within run_grid(), where `here` is a fiber.
inline Engine& engine() { return *static_cast<const Fiber*>(here)->engine; }

/// Lets others run until this thread is ready again.
void wait();
/// Counts this thread in, and waits until `expected` have come to the same call.
void gather(Gathering& g, int expected, int line, const char* where, bool orders_memory);

template <class Do>
void as(void* identity, const Fiber& fiber, const Do& what) {
  if (identity == nullptr) return;
  __tsan_switch_to_fiber(identity, kNoOrder);
  what();
  __tsan_switch_to_fiber(fiber.race, kNoOrder);
}

/// For a thread and its asynchronous proxy, each with its own part of the edge.
inline void release_both(const Fiber& fiber, Edge edge) {
  release(edge);
  as(fiber.proxy, fiber, [&] { release(edge + kProxy); });
}
inline void acquire_both(const Fiber& fiber, Edge edge) {
  acquire(edge);
  as(fiber.proxy, fiber, [&] { acquire(edge + kProxy); });
}

// hopper_engine.cpp
bool has_proxies();
/// Makes one of the copies under way, in any order; false: there is none.
bool make_bulk_copy();
/// "" or what the barrier at which it waits still counts.
std::string state_of_barrier(const Fiber& fiber);

}  // namespace st::simulated
