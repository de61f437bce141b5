#include "grid_engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "grid_fibers.h"
#include "warp_product.h"

// AddressSanitizer's: it follows switches between stacks.
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** save, const void* bottom, size_t bytes);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* save, const void** bottom, size_t* bytes);
}

// st_switch_stack(save, to): keeps the registers that a function must keep on this stack, its top in *save, and returns on the other stack.
asm(R"(
.text
.globl st_switch_stack
.hidden st_switch_stack
.type st_switch_stack,@function
st_switch_stack:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
.size st_switch_stack,.-st_switch_stack
)");
extern "C" void st_switch_stack(void** save, void* to);

namespace st::simulated {

constinit thread_local const Place* here = nullptr;
constinit size_t shared_limit = kSharedBytes;
void (*on_launch)(const void* kernel, int64_t blocks) = nullptr;

namespace {

constexpr size_t kStack = size_t{64} << 10;
constexpr size_t kKept = 512;  // identities of threads of a grid that have ended; see make_identities()

// clang's ThreadSanitizer has no room for the threads of a grid: to it they are all their stream.
#ifdef ST_THREAD_SANITIZED
constexpr bool kHasIdentities = false;
#else
constexpr bool kHasIdentities = true;
#endif

uint64_t seed_of_orders = 1;

void switch_to(Fiber& from, Fiber& to, bool ends) {
  Engine& e = engine();
  const bool back = &to == &e.caller;
  if (__sanitizer_start_switch_fiber != nullptr)
    __sanitizer_start_switch_fiber(ends ? nullptr : &from.asan, back ? e.callers_bottom : to.stack, back ? e.callers_bytes : kStack);
  e.before = &from;
  e.now = &to;
  here = &to;
  if (to.race != nullptr) __tsan_switch_to_fiber(to.race, kNoOrder);
  st_switch_stack(&from.top, to.top);
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(from.asan, nullptr, nullptr);
}

void start();

/// A stack on which start() runs next.
void take_stack(Fiber& fiber) {
  const Unseen unseen;
  Engine& e = engine();
  std::byte* stack = nullptr;
  if (!e.stacks.empty()) {
    stack = e.stacks.back();
    e.stacks.pop_back();
  }
  if (stack == nullptr || __tsan_create_fiber != nullptr) {  // to ThreadSanitizer a stack that is used again is new memory
    void* const mapped = mmap(stack, kStack, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (stack == nullptr ? 0 : MAP_FIXED), -1, 0);
    if (mapped == MAP_FAILED) throw std::runtime_error("simulated grid: no memory for a stack");
    stack = static_cast<std::byte*>(mapped);
  }
  fiber.stack = stack;
  // Tops at different places of a page, else they would all be in the same few lines of the cache.
  const auto step = reinterpret_cast<uintptr_t>(stack) / kStack % 32 * 128;
  auto* top = reinterpret_cast<uint64_t*>(stack + kStack - 64 - step);
  *--top = 0;  // start() has no caller
  *--top = reinterpret_cast<uint64_t>(&start);
  for (int saved = 0; saved < 6; ++saved) *--top = 0;
  fiber.top = top;
}

void give_back_stack(Fiber& fiber) {
  const Unseen unseen;
  if (fiber.stack != nullptr) engine().stacks.push_back(std::exchange(fiber.stack, nullptr));
}

/// One that can run, in a random order; null: none can.
Fiber* take_ready() {
  Engine& e = engine();
  if (!e.is_late && !e.block->copies.empty() && e.random() % 4 == 0) make_bulk_copy();
  while (e.ready.empty())
    if (!make_bulk_copy()) return nullptr;
  std::swap(e.ready[(e.random() >> 32) * e.ready.size() >> 32], e.ready.back());
  Fiber* const next = e.ready.back();
  e.ready.pop_back();
  if (next->stack == nullptr) take_stack(*next);
  return next;
}

/// The first code on a fiber's stack.
void start() {
  Engine& e = engine();
  if (__sanitizer_finish_switch_fiber != nullptr) {
    const bool is_callers = e.before == &e.caller;
    __sanitizer_finish_switch_fiber(nullptr, is_callers ? &e.callers_bottom : nullptr, is_callers ? &e.callers_bytes : nullptr);
  }
  acquire(&e.edges->begin);
  try {
    (*e.body)();
  } catch (...) {
    e.error = std::current_exception();
  }
  release(&e.edges->end);
  e.now->has_ended = true;
  e.ended_last = e.now;
  --e.block->alive;
  switch_to(*e.now, e.caller, true);
}

void make_ready(Fiber& fiber, const Place& place) {
  static_cast<Place&>(fiber) = place;
  fiber.engine = &engine();
  fiber.asan = nullptr;
  fiber.has_ended = fiber.is_fenced = false;
  fiber.atomics.clear();
  fiber.copies.clear();
  fiber.barrier = nullptr;
  fiber.products.clear();
  fiber.product_groups.clear();
}

std::string where_they_wait(std::span<const Fiber> fibers) {
  std::string words;
  int shown = 0;
  for (const Fiber& fiber : fibers)
    if (!fiber.has_ended && shown++ < 3)
      words += "; thread " + std::to_string(fiber.thread) + " waits at " + fiber.where + ", line " + std::to_string(fiber.line) +
               state_of_barrier(fiber);
  return words;
}

void run_block(const Block& block, std::span<Fiber> fibers) {
  Engine& e = engine();
  e.ready.clear();
  for (Fiber& fiber : fibers) e.ready.push_back(&fiber);
  while (block.alive > 0) {
    Fiber* const next = take_ready();
    if (next == nullptr) throw std::runtime_error("deadlock" + where_they_wait(fibers));
    switch_to(e.caller, *next, false);
    if (e.ended_last != nullptr) give_back_stack(*std::exchange(e.ended_last, nullptr));
    if (e.error) return;
  }
  if (!block.copies.empty()) throw std::runtime_error("the block ends while a copy to its shared memory is under way");
  for (const Fiber& fiber : fibers)
    if (!fiber.product_groups.empty() || !fiber.products.empty())
      throw std::runtime_error("thread " + std::to_string(fiber.thread) + " ends while its products are under way");
}

/// One of an earlier grid, if there is one: ThreadSanitizer takes 0.4 ms to make another. All that an idle one has done or waited for
/// happened before the grid began, as all threads of that know.
void* take_identity() {
  Engine& e = engine();
  if (e.idle.empty()) return __tsan_create_fiber(0);
  void* const idle = e.idle.back();
  e.idle.pop_back();
  return idle;
}

/// ThreadSanitizer gives the number of an identity that is destroyed to a later one, and takes both for one: so the last ones stay, and the
/// threads of a block get theirs in a random order.
void make_identities(std::span<Fiber> fibers) {
  if (!kHasIdentities || __tsan_create_fiber == nullptr) return;
  std::vector<Fiber*> order;
  for (Fiber& fiber : fibers) order.push_back(&fiber);
  std::ranges::shuffle(order, engine().random);
  for (Fiber* const fiber : order) {
    fiber->race = take_identity();
    fiber->proxy = has_proxies() ? __tsan_create_fiber(0) : nullptr;
  }
}

void end_identities(std::span<const Fiber> fibers, size_t kept) {
  Engine& e = engine();
  for (const Fiber& fiber : fibers) {
    if (fiber.race == nullptr) continue;
    if (!fiber.has_ended) {  // left in the middle by an error: it did what it did
      __tsan_switch_to_fiber(fiber.race, kNoOrder);
      release(&e.edges->end);
      __tsan_switch_to_fiber(e.caller.race, kNoOrder);
    }
    e.ended.push_back({fiber.race, fiber.has_ended});
    if (fiber.proxy != nullptr) e.ended.push_back({fiber.proxy, false});
  }
  for (; e.ended.size() > kept; e.ended.pop_front()) __tsan_destroy_fiber(e.ended.front().race);
}

void destroy_idle(Engine& e) {
  for (void* const idle : e.idle) __tsan_destroy_fiber(idle);
  e.idle.clear();
}

/// Those of another stream know what this one need not know.
void begin_identities(Engine& e) {
  const uint64_t ended = identities_ended.load(std::memory_order_relaxed);
  if (e.idle_after != e.caller.race || e.idle_since != ended) destroy_idle(e);
  e.idle_after = e.caller.race;
  e.idle_since = ended;
}

/// After the grid.
void keep_identities(Engine& e) {
  const Unseen unseen;
  for (const auto& [race, is_threads] : e.ended) is_threads ? e.idle.push_back(race) : __tsan_destroy_fiber(race);
  e.ended.clear();
}

/// As run_grid(), of one block.
void run_threads(const Place& first) {
  Engine& e = engine();
  auto unseen = std::make_unique<Unseen>();
  // On the heap, so that ThreadSanitizer forgets its edges: else they would order this block before the next one.
  auto block = std::make_unique<Block>();
  block->alive = first.threads;
  block->warps = std::vector<Warp>(static_cast<size_t>((first.threads + kLanes - 1) / kLanes));
  const std::span<Fiber> fibers(e.fibers.data(), static_cast<size_t>(first.threads));
  for (int i = 0; i < first.threads; ++i) {
    Place place = first;
    place.thread = i;
    make_ready(fibers[static_cast<size_t>(i)], place);
  }
  make_identities(fibers);
  unseen.reset();
  e.block = block.get();
  try {
    run_block(*block, fibers);
  } catch (...) {
    e.error = std::current_exception();
  }
  for (void* const copier : block->copiers) as(copier, e.caller, [&] { release(&e.edges->end); });
  const Unseen end;
  for (Fiber& fiber : fibers) give_back_stack(fiber);
  for (void* const copier : block->copiers) e.ended.push_back({copier, false});
  block.reset();
  end_identities(fibers, kKept);
}

}  // namespace

Engine::~Engine() {
  destroy_idle(*this);
  for (std::byte* const stack : stacks) munmap(stack, kStack);
}

void wait() {
  Engine& e = engine();
  Fiber* const next = take_ready();
  switch_to(*e.now, next == nullptr ? e.caller : *next, false);
}

void gather(Gathering& g, int expected, int line, const char* where, bool orders_memory) {
  Engine& e = engine();
  Fiber& fiber = *e.now;
  fiber.line = line;
  fiber.where = where;
  if (g.arrived++ == 0) g.line = line;
  if (g.line != line)
    throw std::runtime_error(std::string("thread ") + std::to_string(fiber.thread) + " is at " + where + " of line " +
                             std::to_string(line) + " while others are at line " + std::to_string(g.line));
  const Edge edge = &g.edges[g.turn & 1];
  if (orders_memory) release_both(fiber, edge);
  if (g.arrived == expected) {
    g.arrived = 0;
    ++g.turn;
    for (; g.waiting != nullptr; g.waiting = g.waiting->next_waiting) e.ready.push_back(g.waiting);
  } else {
    fiber.next_waiting = std::exchange(g.waiting, &fiber);
    wait();
  }
  if (orders_memory) acquire_both(fiber, edge);
}

void set_seed(uint64_t seed) { seed_of_orders = seed; }

namespace {

/// The thread's, whose first grid may be that of a stream which no host waits for before the thread ends.
Engine& engine_of_thread() {
  struct End {
    void operator()(Engine* of) const {
      const Unseen unseen;
      delete of;
    }
  };
  const Unseen unseen;  // of glibc's note that End is to be called too
  thread_local const std::unique_ptr<Engine, End> own(new Engine);
  return *own;
}

}  // namespace

void run_grid(const std::function<void()>& body, int64_t blocks, int threads, size_t launch_shared) {
  if (threads < 1 || threads > kMostThreads) throw std::runtime_error("simulated grid: blocks of " + std::to_string(threads) + " threads");
  Engine& e = engine_of_thread();
  e.caller.engine = &e;
  here = &e.caller;
  {
    const Unseen unseen;
    if (e.fibers.size() < static_cast<size_t>(threads)) e.fibers.resize(static_cast<size_t>(threads));
    e.ready.reserve(e.fibers.size());
  }
  e.body = &body;
  e.launch_shared = launch_shared;
  e.error = nullptr;
  e.caller.race = !kHasIdentities || __tsan_get_current_fiber == nullptr ? nullptr : __tsan_get_current_fiber();
  begin_identities(e);
  auto edges = [] {
    const Unseen unseen;
    return std::make_unique<Edges>();
  }();
  e.edges = edges.get();
  release(&e.edges->begin);
  e.random = {seed_of_orders};
  e.is_late = seed_of_orders % 2 == 0;
  std::vector<int> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, e.random);
  int failed = 0;
  for (const int block : order) {
    run_threads({.thread = 0, .block = block, .threads = threads, .blocks = static_cast<int>(blocks)});
    failed = block;
    if (e.error) break;
  }
  keep_identities(e);
  acquire(&edges->end);
  if (!e.error) return;
  try {
    std::rethrow_exception(std::exchange(e.error, nullptr));
  } catch (const std::exception& why) {
    throw std::runtime_error("block " + std::to_string(failed) + ": " + why.what());
  }
}

void sync_block(int line) {
  Block& block = *engine().block;
  gather(block.all, here->threads, line, "sync_block", true);
}

void exchange(const void* mine, void* taken, size_t bytes, int from, int line) {
  const int first = here->thread / kLanes * kLanes, lane = here->thread - first, lanes = std::min(kLanes, here->threads - first);
  Warp& warp = engine().block->warps[static_cast<size_t>(here->thread / kLanes)];
  if (from < 0 || from >= lanes)
    throw std::runtime_error("line " + std::to_string(line) + ": a shuffle reads lane " + std::to_string(from));
  // The lanes of the next call write the other half; the call after it begins when all have taken.
  auto& given = warp.given[warp.turn & 1];
  pass_on(given[lane], mine, bytes);
  gather(warp, lanes, line, "shuffle", false);
  pass_on(taken, given[from], bytes);
}

void multiply_add(const Fragments& mine, int line) {
  const int lane = here->thread % kLanes;
  if (here->threads - (here->thread - lane) < kLanes)
    throw std::runtime_error("line " + std::to_string(line) + ": a product of matrices by part of a warp");
  Warp& warp = engine().block->warps[static_cast<size_t>(here->thread / kLanes)];
  warp.fragments[lane] = &mine;
  const bool is_last = warp.arrived == kLanes - 1;
  gather(warp, kLanes, line, "multiply_add", false);
  if (!is_last) return;
  // The others run after this.
  multiply_fragments(warp.fragments);
}

void add_copy(const Copy& copy) {
  const Unseen unseen;
  engine().now->copies.all.push_back(copy);
}

void commit_copies() {
  const Unseen unseen;
  Copies& copies = engine().now->copies;
  copies.groups.push_back(copies.all.size());
}

const Copy* next_copy(int pending) {
  Copies& copies = engine().now->copies;
  const size_t due = copies.groups.size() - std::min(copies.groups.size(), static_cast<size_t>(pending));
  const size_t end = due == 0 ? 0 : copies.groups[due - 1];
  if (copies.made < end) return &copies.all[copies.made++];
  if (copies.made == copies.all.size() && pending == 0) copies.clear();
  return nullptr;
}

void* shared_array(const void* place, size_t bytes, size_t alignment) {
  const Unseen unseen;
  Block& block = *engine().block;
  auto found = block.shared.find(place);
  if (found == block.shared.end()) {
    alignment = std::max<size_t>(alignment, 16);
    const size_t at = (block.shared_bytes + alignment - 1) / alignment * alignment;
    block.shared_bytes = at + bytes;
    if (block.shared_bytes > shared_limit)
      throw std::runtime_error(std::to_string(block.shared_bytes) + " bytes of shared memory, there are " + std::to_string(shared_limit));
    found = block.shared.try_emplace(place, bytes, alignment, at).first;
    std::memset(found->second.bytes.get(), 0xFF, bytes);  // NaN in every float
  }
  return found->second.bytes.get();
}

void* launch_shared() {
  static const char place = 0;
  if (engine().launch_shared == 0) throw std::runtime_error("the launch has no shared memory");
  return shared_array(&place, engine().launch_shared, 16);
}

void before_atomic(void* place) {
  if (engine().now->is_fenced) release(place);
}

void after_atomic(void* place) {
  const Unseen unseen;
  Fiber& fiber = *engine().now;
  if (std::ranges::find(fiber.atomics, place) == fiber.atomics.end()) fiber.atomics.push_back(place);
}

void fence() {
  Fiber& fiber = *engine().now;
  fiber.is_fenced = true;
  for (void* const place : fiber.atomics) acquire(place);
}

}  // namespace st::simulated
