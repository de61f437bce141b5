// The tile schedule of a product: which pieces of A, B and C a kernel works on, and in which order. A value that can be read, set and
// printed.
//
// Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): packed pieces of A and B stay in cache while a
// micro-kernel keeps an mr x nr tile of C in registers. Three levels here: a *block* (block_m x kc of A, kc x block_n of B) is packed at a
// time and shared by all threads; a *task* (mc x nc of C) is what one thread takes; a *tile* (mr x nr) is what the registers hold.
#pragma once

#include <cstdint>
#include <string>

#include "gemm/problem.h"

namespace st {

class GemmLibrary;

enum class InstructionSet : int32_t { portable, avx2, avx512, avx512_bf16, amx_bf16 };

/// Which of the two packed operands stays while the other moves on. Both leave the bits alone.
enum class LoopOrder : int32_t {
  n_k_m,  // B is packed once; C is visited once for each piece of K
  n_m_k,  // a block of C is finished before the next begins: partial sums may stay apart from C
};

enum class Packing : int32_t {
  choose,
  packed,
  in_place,  // B is read where it lies (few rows: each element is used once or twice)
};

/// Sizes in elements; 0 means "choose". Only kc decides bits, where no library does: the sum over K is cut there, and never across threads.
struct TileSchedule {
  int64_t mr = 0, nr = 0;            // registers
  int64_t mc = 0, nc = 0, kc = 0;    // one task, one piece of K
  int64_t kr = 0;                    // elements of K that the kernel takes together: 1 as floats, more as bf16; of the set, never wished
  int64_t block_m = 0, block_n = 0;  // packed at a time
  int64_t block_k = 0;               // of K, whole pieces; never wished
  LoopOrder order = LoopOrder::n_k_m;
  Packing b = Packing::choose;
  const GemmLibrary* library = nullptr;  // makes the product in place of our kernels: its bits, which no size here decides
  bool packs_b() const { return b != Packing::in_place; }
  bool operator==(const TileSchedule&) const = default;
};

/// Up to so many rows B is not packed: a copy would cost much of what the product does.
constexpr int64_t kRowsInPlace = 128;
/// The same for kernels that take `kr` elements of K together: each task makes pairs of what it reads.
constexpr int64_t rows_in_place(int64_t kr) { return kr > 1 ? 40 : kRowsInPlace; }
/// Then the sums of a task wait while B streams past: rows x widths of the micro-kernel.
constexpr int64_t kSumsInPlace = 4 * kRowsInPlace;
/// Widths of the micro-kernel that a block of such a B is a multiple of, as one that is packed is by default.
constexpr int64_t kWidthsInPlace = 8;

/// Cache sizes a schedule is made for. By default a fixed table by instruction set: the same bits and tasks on every machine of a class.
struct CacheSizes {
  int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 16 << 20;
};

/// Fills in what is 0 in `wanted`, rounds what is not to the micro-kernel's multiples. A pure function of its arguments.
/// Throws unsupported where B is wanted in place and cannot be.
TileSchedule choose_schedule(const GemmProblem& problem, InstructionSet set, const CacheSizes& caches = {}, TileSchedule wanted = {});

/// As seen from the transposed problem: what M was is N.
TileSchedule transposed(const TileSchedule& schedule);

/// Scratch bytes one problem of the batch needs under `schedule`, a multiple of 64.
int64_t scratch_bytes(const GemmProblem& problem, const TileSchedule& schedule);

/// How one product of the batch lays its scratch out: offsets in bytes, multiples of 64.
struct ScratchLayout {
  int64_t a = 0, b = 0, sums = 0, bytes = 0;  // packed A, packed B, partial sums of a block of C (where C itself cannot hold them)
};
ScratchLayout scratch_layout(const GemmProblem& problem, const TileSchedule& schedule);

/// Whether partial sums over the pieces of K need room of their own: C is of 16 bits, is added to, or does not have unit columns, or the
/// kernels are of tiles.
bool sums_apart(const GemmProblem& problem, const TileSchedule& schedule);

/// Whether a task packs the piece of B that it is about to use: kernels of tiles, where no other task has those columns.
bool packs_by_task(const GemmProblem& problem, const TileSchedule& schedule);

/// How many tasks of a block have room for their sums, and their piece of B, at a time, where tasks keep them tile by tile (kernels of
/// tiles).
int64_t sum_rooms(const GemmProblem& problem, const TileSchedule& schedule);

std::string text_of(const TileSchedule& schedule);  // "tile 14x32, task 112x256, k 1024, block 2016x2048, order n k m"

}  // namespace st
