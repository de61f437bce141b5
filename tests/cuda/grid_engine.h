// Runs kernels without a device: each thread of a grid is a fiber of the thread that calls run_grid(), which runs them one after another in
// a random order, until each has ended or waits. Under ThreadSanitizer each one is an identity of its own, so that a missing barrier or
// fence is a data race, though nothing here runs at the same time. The engine itself is compiled without sanitizers. What it does not
// model: memory that is weaker than these orders, time, registers, instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace st::simulated {

constexpr int kLanes = 32;
constexpr size_t kExchanged = 16;        // bytes that a lane gives to others
constexpr size_t kSharedBytes = 232448;  // of a block on sm_90; less elsewhere
constexpr int kMostThreads = 1024;       // of a block

struct Place {
  int thread = 0, block = 0, threads = 0, blocks = 0;
};
/// That of the kernel's thread which runs now. A place in memory: reading it is no access that a sanitizer sees as another thread's.
extern constinit thread_local const Place* here;

/// Seed of the order of blocks and threads, of this process: grids with the same seed run alike.
void set_seed(uint64_t seed);

/// Bytes of shared memory that a block can have: kSharedBytes, or fewer, as on other devices. Change it while no kernel runs.
extern constinit size_t shared_limit;

/// Runs `body` once for each thread. Throws std::runtime_error with the block, the threads and the lines at which they wait if some never
/// come to a barrier or a shuffle, or come to different ones; or what `body` throws.
void run_grid(const std::function<void()>& body, int64_t blocks, int threads, size_t launch_shared = 0);

/// Called with the function of each kernel that is launched, by the host's thread; null: nobody asks.
extern void (*on_launch)(const void* kernel, int64_t blocks);

void sync_block(int line);
/// Gives `mine` to the warp and takes what lane `from` gives in the same call.
void exchange(const void* mine, void* taken, size_t bytes, int from, int line);
/// A lane's fragments of rows x columns blocks (device/mma.h), until it returns from the call.
struct Fragments {
  float* sums;
  const uint32_t *a, *b;
  int rows, columns;
  bool is_bf16;
};
/// Adds the products of all lanes' fragments to their sums, once all have come.
void multiply_add(const Fragments& mine, int line);

/// sums[i][j] = a[i] b[j] + sums[i][j], rounded once, for 4 columns.
void add_outer_product(float* sums, const float* a, const float* b, int rows);
void add_outer_product(double* sums, const double* a, const double* b, int rows);

/// Copies of the running thread to shared memory: 16 bytes, of which the first `bytes` are those of `from`.
struct Copy {
  void* to;
  const void* from;
  int bytes;
};
void add_copy(const Copy& copy);
void commit_copies();
/// The next copy of a group before the last `pending`; null: all have been returned. Valid until the thread adds one.
const Copy* next_copy(int pending);

/// The array of this place in the kernel: one a block, poisoned with NaN.
void* shared_array(const void* place, size_t bytes, size_t alignment);
/// That of run_grid's `launch_shared` bytes. Throws if there are none.
void* launch_shared();
/// The memory that an atomic orders: what a fence before it has released, and a fence after it acquires.
void before_atomic(void* place);
void after_atomic(void* place);
void fence();

}  // namespace st::simulated
