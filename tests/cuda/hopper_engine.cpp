#include "hopper_engine.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/float16.h"
#include "grid_fibers.h"

namespace st::simulated {
namespace {

constexpr int kGroup = 128;          // threads of a warp group
constexpr size_t kCopiers = 8;       // identities of a block's copies
constexpr int kRowBytes = 128;       // of a tile
constexpr size_t kEightRows = 1024;  // bytes: the swizzle repeats
constexpr uint64_t kInitialised = 0x5A;
constexpr uint64_t kMostArrivals = 2047;

template <class Do>
void as_or_plain(void* identity, const Fiber& fiber, const Do& what) {
  identity == nullptr ? what() : as(identity, fiber, what);
}

bool are_proxies_used = false;

struct Counts {
  uint64_t arrivals;  // of a phase
  uint64_t pending;   // of them, to come
  uint64_t parity;    // of the phase that has not passed
  int64_t bytes;      // to come, less those that came first
};

/// A barrier's 8 bytes. Those of shared memory that nobody has initialised do not end in kInitialised.
uint64_t packed(const Counts& counts) {
  return kInitialised | counts.parity << 8 | counts.arrivals << 9 | counts.pending << 20 | static_cast<uint64_t>(counts.bytes) << 31;
}

uint64_t bits_of(const uint64_t* barrier) {
  uint64_t bits;
  pass_on(&bits, barrier, sizeof(bits));
  return bits;
}

Counts counts_of(const uint64_t* barrier) {
  const uint64_t bits = bits_of(barrier);
  return {bits >> 9 & kMostArrivals, bits >> 20 & kMostArrivals, bits >> 8 & 1, static_cast<int64_t>(bits) >> 31};
}

[[noreturn]] void refuse(int line, const std::string& why) { throw std::runtime_error("line " + std::to_string(line) + ": " + why); }

Counts initialised(const uint64_t* barrier, int line) {
  if ((bits_of(barrier) & 0xFF) != kInitialised) refuse(line, "the barrier was not initialised");
  return counts_of(barrier);
}

/// The edge of the phase with this parity: its own bytes are addresses enough.
Edge edge_of(uint64_t* barrier, uint64_t parity) { return reinterpret_cast<char*>(barrier) + parity; }

void write_counts(uint64_t* barrier, Counts counts) {
  const bool has_passed = counts.pending == 0 && counts.bytes == 0;
  if (has_passed) {
    counts.parity ^= 1U;
    counts.pending = counts.arrivals;
  }
  const uint64_t bits = packed(counts);
  pass_on(barrier, &bits, sizeof(bits));
  if (!has_passed) return;
  const Unseen unseen;
  std::erase_if(engine().block->at_barriers, [&](Fiber* fiber) {
    if (fiber->barrier != barrier) return false;
    engine().ready.push_back(fiber);
    return true;
  });
}

/// The array of the block that has this place.
const SharedArray& array_of(const void* place, int line) {
  for (const auto& [key, array] : engine().block->shared)
    if (place >= array.bytes.get() && place < array.bytes.get() + array.size) return array;
  refuse(line, "not a place in shared memory");
}

size_t address_of(const void* place, int line) {
  const SharedArray& array = array_of(place, line);
  return array.at + static_cast<size_t>(static_cast<const std::byte*>(place) - array.bytes.get());
}

std::byte* shared_place(size_t address, size_t bytes) {
  for (const auto& [key, array] : engine().block->shared)
    if (address >= array.at && address + bytes <= array.at + array.size) return array.bytes.get() + (address - array.at);
  throw std::runtime_error("no array has the shared address " + std::to_string(address));
}

size_t swizzled(size_t address) { return address ^ (address >> 7 & 7) << 4; }

/// Copies under way are seen where they go: by who does not wait, and by who still reads what was there.
void begin_copy(std::vector<Copy> chunks, int bytes, uint64_t* barrier, int line) {
  initialised(barrier, line);
  for (const Copy& chunk : chunks) {
    constexpr uint64_t kNan[] = {~uint64_t{0}, ~uint64_t{0}};
    pass_on(chunk.to, kNan, sizeof(kNan));
  }
  auto begin = std::make_unique<char>();
  Fiber& fiber = *engine().now;
  release(begin.get());
  as(fiber.proxy, fiber, [&] { release(begin.get()); });
  engine().block->copies.push_back({std::move(chunks), barrier, bytes, std::move(begin)});
}

/// The identity of the copy that begins to happen. Made by the identity of the grid's caller, which knows nothing of the block's threads.
void* next_copier() {
  if (__tsan_create_fiber == nullptr) return nullptr;
  Engine& e = engine();
  std::vector<void*>& copiers = e.block->copiers;
  const size_t turn = e.block->copies_made++ % kCopiers;
  if (turn == copiers.size()) as(e.caller.race, *e.now, [&] { copiers.push_back(__tsan_create_fiber(0)); });
  return copiers[turn];
}

/// With the accesses that ThreadSanitizer is to see.
void make_chunk(const Copy& chunk) {
  if (__tsan_write_range != nullptr) {
    if (chunk.bytes > 0) __tsan_read_range(const_cast<void*>(chunk.from), static_cast<size_t>(chunk.bytes));
    __tsan_write_range(chunk.to, 16);
  }
  uint64_t words[2] = {};
  pass_on(words, chunk.from, static_cast<size_t>(chunk.bytes));
  pass_on(chunk.to, words, sizeof(words));
}

/// The 16 bytes of a row of a tile from column k on, as `fiber`'s proxy reads them.
void read_chunk(uint64_t descriptor, int row, int k, float (&to)[8]) {
  const size_t address = (descriptor & 0x3FFF) * 16 + static_cast<size_t>(row / 8) * (descriptor >> 32 & 0x3FFF) * 16 +
                         static_cast<size_t>(row % 8 * kRowBytes + k * 2);
  const std::byte* const from = shared_place(swizzled(address), 16);
  if (__tsan_read_range != nullptr) __tsan_read_range(const_cast<std::byte*>(from), 16);
  uint16_t bits[8];
  pass_on(bits, from, sizeof(bits));
  for (int i = 0; i < 8; ++i) to[i] = f32_of_bf16(bits[i]);
}

void multiply(const TileProduct& product, int thread) {
  constexpr int kDepth = 16, kColumns = 64;
  const int first_row = thread / kLanes * 16 + thread % kLanes / 4;
  float a[2][kDepth], b[kColumns][kDepth];
  const auto read = [](uint64_t descriptor, int row, float(&to)[kDepth]) {
    float half[8];
    for (int k = 0; k < kDepth; k += 8) {
      read_chunk(descriptor, row, k, half);
      std::copy(half, half + 8, to + k);
    }
  };
  for (int i = 0; i < 2; ++i) read(product.a, first_row + 8 * i, a[i]);
  for (int column = 0; column < kColumns; ++column) read(product.b, column, b[column]);
  for (int i = 0; i < 32; ++i) {
    float sum = 0;
    for (int k = 0; k < kDepth; ++k) sum += a[i / 2 % 2][k] * b[i / 4 * 8 + thread % 4 * 2 + i % 2][k];
    product.sums[i] = (product.adds ? product.sums[i] : 0) + sum;
  }
}

/// The edge of the running thread's group.
Edge product_edge() { return engine().block->product_edges[here->thread / kGroup]; }

void make_first_group() {
  Fiber& fiber = *engine().now;
  as_or_plain(fiber.proxy, fiber, [&] {
    for (const TileProduct& product : fiber.product_groups.front()) multiply(product, fiber.thread % kGroup);
    release(product_edge());
    release(product_edge() + kProxy);
  });
  const Unseen unseen;
  fiber.product_groups.erase(fiber.product_groups.begin());
}

void converge(int line, const char* where) {
  const int group = here->thread / kGroup;
  if (here->threads < (group + 1) * kGroup) refuse(line, "a product of tiles by part of a warp group");
  Gathering* gathering = nullptr;
  {
    const Unseen unseen;
    gathering = &engine().block->groups[group];
  }
  gather(*gathering, kGroup, line, where, false);
}

}  // namespace

bool use_proxies() { return are_proxies_used = true; }
bool has_proxies() { return are_proxies_used; }

std::string state_of_barrier(const Fiber& fiber) {
  if (fiber.barrier == nullptr) return {};
  const Counts counts = counts_of(fiber.barrier);
  return " (to come: " + std::to_string(counts.pending) + " arrivals, " + std::to_string(counts.bytes) + " bytes)";
}

void init_barrier(uint64_t* barrier, int arrivals) {
  if (arrivals < 1 || arrivals > static_cast<int>(kMostArrivals))
    throw std::runtime_error("a barrier of " + std::to_string(arrivals) + " arrivals");
  const auto count = static_cast<uint64_t>(arrivals);
  const uint64_t bits = packed({.arrivals = count, .pending = count, .parity = 0, .bytes = 0});
  pass_on(barrier, &bits, sizeof(bits));
}

void arrive(uint64_t* barrier, int bytes, int line) {
  Counts counts = initialised(barrier, line);
  if (counts.pending == 0) refuse(line, "more arrivals than the barrier's phase counts");
  release_both(*engine().now, edge_of(barrier, counts.parity));
  counts.pending -= 1;
  counts.bytes += bytes;
  write_counts(barrier, counts);
}

void wait_phase(uint64_t* barrier, int parity, int line) {
  Fiber& fiber = *engine().now;
  while (initialised(barrier, line).parity == static_cast<uint64_t>(parity)) {
    fiber.line = line;
    fiber.where = "wait_phase";
    fiber.barrier = barrier;
    {
      const Unseen unseen;
      engine().block->at_barriers.push_back(&fiber);
    }
    wait();
    fiber.barrier = nullptr;
  }
  acquire_both(fiber, edge_of(barrier, static_cast<uint64_t>(parity)));
}

void fence_proxy() {
  Fiber& fiber = *engine().now;
  std::unique_ptr<char> edge;  // on the heap, so that ThreadSanitizer forgets it
  {
    const Unseen unseen;
    edge = std::make_unique<char>();
  }
  release(edge.get());
  as(fiber.proxy, fiber, [&] { acquire(edge.get()); });
  const Unseen unseen;
  edge.reset();
}

void copy_bulk(void* to, const void* from, int bytes, uint64_t* barrier, int line) {
  const Unseen unseen;
  if (bytes <= 0 || bytes % 16 != 0 || address_of(to, line) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0)
    refuse(line, "a copy of " + std::to_string(bytes) + " bytes: not a multiple of 16, or misaligned");
  if (const SharedArray& array = array_of(to, line); address_of(to, line) + static_cast<size_t>(bytes) > array.at + array.size)
    refuse(line, "a copy of " + std::to_string(bytes) + " bytes ends after its array");
  std::vector<Copy> chunks;
  for (int at = 0; at < bytes; at += 16) chunks.push_back({static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at, 16});
  begin_copy(std::move(chunks), bytes, barrier, line);
}

void copy_tile(void* to, const TileSource& source, int column, int row, uint64_t* barrier, int line) {
  const Unseen unseen;
  const size_t address = address_of(to, line);
  if (address % 128 != 0) refuse(line, "the tile's shared address " + std::to_string(address) + " is not a multiple of 128");
  std::vector<Copy> chunks;
  for (int r = 0; r < source.tile_rows; ++r)
    for (int chunk = 0; chunk < kRowBytes / 16; ++chunk) {
      const int64_t from_row = row + r, from_column = column + chunk * 8, left = source.columns - from_column;
      const bool is_inside = from_row >= 0 && from_row < source.rows && from_column >= 0 && left > 0;
      const auto at = swizzled(address + static_cast<size_t>(r * kRowBytes + chunk * 16));
      chunks.push_back({shared_place(at, 16), is_inside ? source.from + from_row * source.columns + from_column : nullptr,
                        is_inside ? static_cast<int>(std::min<int64_t>(left, 8) * 2) : 0});
    }
  begin_copy(std::move(chunks), source.tile_rows * kRowBytes, barrier, line);
}

bool make_bulk_copy() {
  Engine& e = engine();
  std::vector<BulkCopy>& all = e.block->copies;
  if (all.empty()) return false;
  auto unseen = std::make_unique<Unseen>();
  std::swap(all[(e.random() >> 32) * all.size() >> 32], all.back());
  BulkCopy copy = std::move(all.back());
  all.pop_back();
  void* const copier = next_copier();
  unseen.reset();
  Counts counts = counts_of(copy.barrier);
  as_or_plain(copier, *e.now, [&] {
    acquire(copy.begin.get());
    for (const Copy& chunk : copy.chunks) make_chunk(chunk);
    release(edge_of(copy.barrier, counts.parity));
    release(edge_of(copy.barrier, counts.parity) + kProxy);
  });
  counts.bytes -= copy.bytes;
  write_counts(copy.barrier, counts);
  const Unseen end;
  copy = {};
  return true;
}

uint64_t tile_descriptor(const void* tile, int line) {
  const size_t address = address_of(tile, line);
  if (address % kEightRows != 0) refuse(line, "the tile's shared address " + std::to_string(address) + " is not a multiple of 1024");
  return (address & 0x3FFFF) >> 4 | uint64_t{1} << 16 | uint64_t{kEightRows >> 4} << 32 | uint64_t{1} << 62;
}

void multiply_tiles(float* sums, uint64_t a, uint64_t b, bool adds, int line) {
  converge(line, "multiply_tiles");
  const Unseen unseen;
  engine().now->products.push_back({sums, a, b, adds});
}

void commit_products() {
  Engine& e = engine();
  Fiber& fiber = *e.now;
  {
    const Unseen unseen;
    fiber.product_groups.push_back(std::exchange(fiber.products, {}));
  }
  if (e.is_late || e.random() % 2 == 0) return;
  while (!fiber.product_groups.empty()) make_first_group();
}

void wait_products(int pending, const float* sums, int line) {
  Fiber& fiber = *engine().now;
  converge(line, "wait_products");
  while (fiber.product_groups.size() > static_cast<size_t>(pending)) make_first_group();
  {
    const Unseen unseen;
    const auto adds_to = [&](const TileProduct& product) { return product.sums == sums; };
    bool is_pending = std::ranges::any_of(fiber.products, adds_to);
    for (const auto& group : fiber.product_groups) is_pending = is_pending || std::ranges::any_of(group, adds_to);
    if (is_pending) refuse(line, "wait_products gives sums to read, and products that are under way add to them");
  }
  converge(line, "wait_products");
  acquire_both(fiber, product_edge());
}

}  // namespace st::simulated
