// The asynchronous proxy of Hopper's devices, for kernels that grid_engine.h runs: barriers that count bytes, the copy engine, products of
// warp groups. Under ThreadSanitizer copies have identities of their own, and each thread has a second one, which accesses memory for its
// products and knows of the thread's own stores only after fence_proxy(). Not found: a copy after stores without fence_proxy(), a missing
// publish_barriers() or begin_products(). A copy or product happens at any time until somebody waits for
// it; where a copy goes there is NaN until then.
#pragma once

#include <cstdint>

namespace st::simulated {

/// Threads have that second identity from the next grid on. Returns true.
bool use_proxies();

// Barriers are 8 bytes in shared memory; `line` is the caller's.
void init_barrier(uint64_t* barrier, int arrivals);
void arrive(uint64_t* barrier, int bytes, int line);
void wait_phase(uint64_t* barrier, int parity, int line);
void fence_proxy();

/// A matrix of bf16, of which tiles of 64 columns are copied.
struct TileSource {
  const uint16_t* from;
  int64_t rows, columns;
  int tile_rows;
};
void copy_bulk(void* to, const void* from, int bytes, uint64_t* barrier, int line);
void copy_tile(void* to, const TileSource& source, int column, int row, uint64_t* barrier, int line);

uint64_t tile_descriptor(const void* tile, int line);
/// This thread's part of a product of 64 x 16 and 64 x 16 elements. All threads of the group come to the same call.
void multiply_tiles(float* sums, uint64_t a, uint64_t b, bool adds, int line);
void commit_products();
/// `sums`: of products that have ended then.
void wait_products(int pending, const float* sums, int line);

}  // namespace st::simulated
