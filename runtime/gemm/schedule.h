// The tile schedule of a product: which blocks of A, B and C a kernel works on, and in which order. A value that can be read, set and
// printed.
//
// After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): packed blocks of A and B stay in cache while a
// micro-kernel keeps an mr x nr tile of C in registers. There are three levels:
// - a *block* (block_m x kc of A, kc x block_n of B) is packed at a time and shared by all threads;
// - a *task* (mc x nc of C, or smaller, or rows of all columns: task_grid.h) is one thread's unit of work;
// - a *tile* (mr x nr) is what the registers hold.
#pragma once

#include <cstdint>
#include <string>

#include "gemm/problem.h"
#include "gemm/rounding.h"

namespace st {

class GemmLibrary;

enum class InstructionSet : int32_t { portable, avx2, avx512, avx512_bf16, amx_bf16 };

/// The tile of C that a set's kernels keep in registers, and the padding of packed operands. Their cells are 32 bits: a float, or a pair of
/// bf16 that are neighbours along K.
struct KernelTile {
  int64_t rows, columns;                    // columns: two vectors
  int64_t together = 1, rows_together = 1;  // elements of K in one step, of which padding completes the last; rows of A likewise

  constexpr int64_t width() const { return columns / 2; }
  constexpr bool pairs() const { return together > 1; }
  /// Cells for k elements along K, in one row or column of a panel.
  constexpr int64_t cells_of(int64_t k) const { return pairs() ? round_up(k, together) / 2 : k; }
  constexpr int64_t padded_rows(int64_t n) const { return round_up(n, rows_together); }
  /// Columns that panels of B take: the last one may be one vector wide.
  constexpr int64_t padded_columns(int64_t n) const { return n - n % columns + (n % columns == 0 ? 0 : panel_width(n % columns)); }
  constexpr int64_t panel_width(int64_t n) const { return n > width() ? columns : width(); }
};
constexpr KernelTile kernel_tile(InstructionSet set) {
  constexpr KernelTile kTiles[] = {{6, 8}, {6, 16}, {14, 32}, {14, 32, 2}, {32, 32, 32, 16}};
  return kTiles[static_cast<size_t>(set)];
}

/// Which of the two packed operands stays while the other advances. The bits are the same.
enum class LoopOrder : int32_t {
  n_k_m,  // B is packed once; C is visited once per K block
  n_m_k,  // a block of C is finished before the next starts: partial sums may stay outside C
};

enum class Packing : int32_t {
  choose,
  packed,
  in_place,  // B is read in place (few rows: each element is used once or twice)
};

/// Sizes in elements; 0 means "choose". Without a library only kc affects the bits: the sum over K is cut there, never across threads.
struct TileSchedule {
  int64_t mr = 0, nr = 0;            // registers
  int64_t mc = 0, nc = 0, kc = 0;    // one task; the K block
  int64_t kr = 0;                    // elements of K per kernel step: 1 for floats, more for bf16; fixed by the instruction set
  int64_t block_m = 0, block_n = 0;  // packed at a time
  int64_t block_k = 0;               // packed depth, a multiple of kc; not settable
  LoopOrder order = LoopOrder::n_k_m;
  Packing b = Packing::choose;
  const GemmLibrary* library = nullptr;  // computes the product instead of our kernels: the bits are the library's, whatever the sizes
  bool packs_b() const { return b != Packing::in_place; }
  bool operator==(const TileSchedule&) const = default;
};

/// Whether the kernels are tile kernels, which take 32 elements of K at a time.
bool is_of_tiles(const TileSchedule& schedule);

/// Up to this many rows B is not packed: the copy would cost much of what the product does.
constexpr int64_t kRowsInPlace = 128;
/// The same for kernels that take `kr` elements of K per step: each task interleaves the lines of B that it reads.
constexpr int64_t rows_in_place(int64_t kr) { return kr > 1 ? 40 : kRowsInPlace; }
/// Sums that a task holds while B in place streams past: rows x micro-kernel widths.
constexpr int64_t kSumsInPlace = 4 * kRowsInPlace;
/// A block of B in place is a multiple of this many micro-kernel widths, like a packed one by default.
constexpr int64_t kWidthsInPlace = 8;

/// Cache sizes that a schedule is made for. The default is fixed, so that every machine of a class has the same tasks and bits.
struct CacheSizes {
  int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 16 << 20;
};

/// Fills in the sizes that are 0 in `wanted` and rounds the others to the micro-kernel's multiples. A pure function. Throws unsupported
/// when B should be read in place and cannot be.
TileSchedule choose_schedule(const GemmProblem& problem, InstructionSet set, const CacheSizes& caches = {}, TileSchedule wanted = {});

/// The schedule of the transposed problem: M and N swapped.
TileSchedule transposed(const TileSchedule& schedule);

/// Scratch bytes that one problem of the batch needs under `schedule`, a multiple of 64.
int64_t scratch_bytes(const GemmProblem& problem, const TileSchedule& schedule);

/// Scratch layout of one product of the batch: offsets in bytes, multiples of 64.
struct ScratchLayout {
  int64_t a = 0, b = 0, sums = 0, bytes = 0;  // packed A, packed B, partial sums of a block of C (if C itself cannot hold them)
};
ScratchLayout scratch_layout(const GemmProblem& problem, const TileSchedule& schedule);

/// Whether partial sums over the K blocks need their own buffer: C is 16-bit, is accumulated into or does not have unit columns, or the
/// kernels are tile kernels.
bool sums_apart(const GemmProblem& problem, const TileSchedule& schedule);

/// Whether each task packs the block of B that it is about to use: tile kernels, where no other task has those columns.
bool packs_by_task(const GemmProblem& problem, const TileSchedule& schedule);

/// Number of tasks of a block that have buffers for their sums, and for their block of B, at the same time (tile kernels, which keep sums
/// tile by tile).
int64_t sum_rooms(const GemmProblem& problem, const TileSchedule& schedule);

std::string text_of(const TileSchedule& schedule);  // "tile 14x32, task 112x256, k 1024, block 2016x2048, order n k m"

}  // namespace st
