// C = op(A) op(B) of 16-bit operands by tensor cores, with sums in fp32: a block has kRows x kColumns of C, in steps of 32 along K, and a
// warp kWarpRows x kWarpColumns of them. Shared memory holds kStages steps, of which all but one are on their way by cp.async. Sums over K
// are in one order, which depends on K and on whether C has 16 bits: those of a step are made from zero, 16 products at a time
// (device/mma.h), and then added in fp32, and where C is fp32 and K is long in slices (sum_slices.h). Tensor cores cut their sums instead
// of rounding them: the error of one sum over K = 2048 is 8 times that of one by fma, over 8192 38 times. With sums of 32 in slices of 4096
// the error is at most 1.5 times the cpu's and a unit of fp32, tried up to K = 131,072; sums of 64 reach that bound, sums of 128 exceed it
// (README.md, "Cut sums", by the model of tests/gpu/tensor_core.h).
//
// In shared memory a step has chunks of 16 bytes, as they are neighbours in memory: lines of 4 chunks along K, or 32 rows of K with a chunk
// for each 8 lines. A chunk's place within its line or row is changed by XOR, so that the 8 rows that ldmatrix reads at a time, one chunk
// each, fall into different banks.
#pragma once

#include "backend/cuda/fragments.cuh"
#include "backend/cuda/product_tile.cuh"

namespace st::cuda {

constexpr int kHalfDepth = 32;  // of K, a step

template <int kRows, int kColumns, int kStageCount, int kRowsOfWarp, int kColumnsOfWarp>
struct HalfTile {
  static constexpr int kTileRows = kRows, kTileColumns = kColumns, kStages = kStageCount;
  static constexpr int kWarpRows = kRowsOfWarp, kWarpColumns = kColumnsOfWarp;
  static constexpr int kThreads = kRows / kWarpRows * (kColumns / kWarpColumns) * kLanes;
};

/// A factor's lines in the block's tile, in shared memory and on their way there.
template <int kLines, bool kAlongK, int kThreads>
struct ChunkedFactor {
  static constexpr int kPerLine = kAlongK ? kHalfDepth / kChunk : kLines / kChunk;  // chunks of a line, or of a row of K
  static constexpr int kChunks = kLines * kHalfDepth / kChunk;
  static_assert(kChunks % kThreads == 0);
  const uint16_t* next;  // of the step that is read next
  int64_t lead;
  int lines;
  bool in_vectors;

  DEVICE ChunkedFactor(const Factor& factor, const uint16_t* x, int64_t first_line, int64_t all_lines)
      : next(x + first_line * (kAlongK ? factor.lead : 1)),
        lead(factor.lead),
        lines(all_lines - first_line < kLines ? static_cast<int>(all_lines - first_line) : kLines),
        in_vectors(factor.in_vectors) {}

  /// Where the chunk of a line (row of K) is.
  DEVICE static int place(int across, int chunk) { return across * kPerLine + (chunk ^ (kAlongK ? across / 2 % 4 : across % 8)); }

  /// Zeros beyond the factor.
  DEVICE void read(Chunk* stage, int64_t depth_left) {
    const int depth = depth_left < kHalfDepth ? static_cast<int>(depth_left) : kHalfDepth;
    const int along_end = kAlongK ? depth : lines, across_end = kAlongK ? lines : depth;
    UNROLL
    for (int i = 0; i < kChunks / kThreads; ++i) {
      const int vector = i * kThreads + thread_index(), across = vector / kPerLine, chunk = vector % kPerLine;
      const int left = across < across_end ? along_end - chunk * kChunk : 0, count = left < 0 ? 0 : left < kChunk ? left : kChunk;
      const uint16_t* const from = next + across * lead + chunk * kChunk;
      Chunk* const to = stage + place(across, chunk);
      if (in_vectors) {
        copy_async(to, count == 0 ? next : from, count * static_cast<int>(sizeof(uint16_t)));
      } else {
        Chunk read{};
        UNROLL
        for (int e = 0; e < kChunk; ++e)
          if (e < count) read.at[e] = from[e];
        store_vector(to, read);
      }
    }
    next += kAlongK ? kHalfDepth : kHalfDepth * lead;
  }

  DEVICE static void load_a(uint32_t (&to)[4], const Chunk* stage, int line, int k) {
    load_a_fragment<kAlongK>(to, line, k, [&](int across, int chunk) { return stage + place(across, chunk); });
  }
  DEVICE static void load_b(uint32_t (&first)[2], uint32_t (&second)[2], const Chunk* stage, int line, int k) {
    load_b_fragments<kAlongK>(first, second, line, k, [&](int across, int chunk) { return stage + place(across, chunk); });
  }
};

/// is_wide: C is fp32.
template <class T, class Tile, bool kAAlongK, bool kBAlongK>
KERNEL((Tile::kThreads), 256 / Tile::kThreads)
half_product(Product p, Stages stages, const uint16_t* a, const uint16_t* b, bool is_wide) {
  constexpr int kRows = Tile::kTileRows, kColumns = Tile::kTileColumns, kStages = Tile::kStages, kThreads = Tile::kThreads;
  constexpr int kWarpRows = Tile::kWarpRows, kWarpColumns = Tile::kWarpColumns;
  constexpr int kDown = kWarpRows / kFragment, kAcross = kWarpColumns / 8;
  constexpr int kTogether = 64, kStride = kColumns + 8;  // rows that are finished at a time; 8 so that a warp's rows fall into other banks
  using A = ChunkedFactor<kRows, kAAlongK, kThreads>;
  using B = ChunkedFactor<kColumns, kBAlongK, kThreads>;
  constexpr int kStage = A::kChunks + B::kChunks, kFinished = kTogether * kStride * 4 / 16;
  SHARED(Chunk, shared, (kStages * kStage > kFinished ? kStages * kStage : kFinished));

  const TilePlace tile = tile_place<kRows, kColumns>(p);
  A of_a(p.a, a + tile.a, tile.row, p.m);
  B of_b(p.b, b + tile.b, tile.column, p.n);
  const int warp = thread_index() / kLanes, lane = thread_index() % kLanes;
  const int warp_row = warp / (kColumns / kWarpColumns) * kWarpRows, warp_column = warp % (kColumns / kWarpColumns) * kWarpColumns;

  const int steps = static_cast<int>((p.k + kHalfDepth - 1) / kHalfDepth);
  const auto read = [&](int step) {
    if (step < steps) {
      Chunk* const stage = shared + step % kStages * kStage;
      of_a.read(stage, p.k - int64_t{step} * kHalfDepth);
      of_b.read(stage + A::kChunks, p.k - int64_t{step} * kHalfDepth);
    }
    commit_copies();
  };
  for (int step = 0; step < kStages - 1; ++step) read(step);
  float sums[kDown * kAcross][4] = {};
  using OfSlices = SliceSums<float, kDown * kAcross, kThreads>;
  if (p.has_slices) OfSlices::begin();
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    sync_block();
    read(step + kStages - 1);  // into the stage of the step before
    const Chunk* const stage = shared + step % kStages * kStage;
    float block[kDown][kAcross][4] = {};
    UNROLL
    for (int k = 0; k < kHalfDepth; k += kFragment) {
      uint32_t fragments_of_a[kDown][4], fragments_of_b[kAcross][2];
      UNROLL
      for (int i = 0; i < kDown; ++i) A::load_a(fragments_of_a[i], stage, warp_row + i * kFragment, k);
      UNROLL
      for (int j = 0; j < kAcross; j += 2) B::load_b(fragments_of_b[j], fragments_of_b[j + 1], stage + A::kChunks, warp_column + j * 8, k);
      multiply_add<half_of(T{})>(block, fragments_of_a, fragments_of_b);
    }
    UNROLL
    for (int i = 0; i < kDown; ++i) {
      UNROLL
      for (int j = 0; j < kAcross; ++j) {
        UNROLL
        for (int e = 0; e < 4; ++e) sums[i * kAcross + j][e] = plus(sums[i * kAcross + j][e], block[i][j][e]);
      }
    }
    if (p.has_slices && (step + 1) % (kSumSlice / kHalfDepth) == 0) OfSlices::add(sums);
  }
  if (p.has_slices) OfSlices::finish(sums);
  wait_copies<0>();
  sync_block();

  auto* const finished = reinterpret_cast<float*>(shared);
  for (int row = 0; row < kRows; row += kTogether) {
    if (warp_row >= row && warp_row < row + kTogether) {
      float* const mine = finished + (warp_row - row + lane / 4) * kStride + warp_column + lane % 4 * 2;
      UNROLL
      for (int i = 0; i < kDown; ++i) {
        UNROLL
        for (int j = 0; j < kAcross; ++j) {
          UNROLL
          for (int half = 0; half < 2; ++half)
            store_vector(mine + (i * kFragment + half * 8) * kStride + j * 8,
                         Vector<float, 2>{{sums[i * kAcross + j][half * 2], sums[i * kAcross + j][half * 2 + 1]}});
        }
      }
    }
    sync_block();
    if (is_wide)
      finish_rows<float, kTogether, kColumns, kStride, kThreads>(p, stages, tile.c, tile.row + row, tile.column, finished);
    else
      finish_rows<T, kTogether, kColumns, kStride, kThreads>(p, stages, tile.c, tile.row + row, tile.column, finished);
    if (row + kTogether < kRows) sync_block();
  }
}

}  // namespace st::cuda
