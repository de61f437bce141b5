// Fragments, matrices that ldmatrix loads, and places of products in shared memory are where CuTe's layouts put them: those of CUTLASS 4.2
// for the instructions of sm_75, sm_80 and sm_90. The simulated device, which these tests run, and a device's kernels have both the
// layouts.
#include <gtest/gtest.h>

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/swizzle.hpp>
#include <vector>

#include "backend/cuda/half_product.cuh"
#include "base/float16.h"
#include "simulated_kernels.h"
#include "tile_ring.cuh"

namespace st::cuda {
namespace {

struct FragmentLayouts : KernelTest {
  FragmentLayouts() : KernelTest(Order::late) {}
};

template <Half kType>
using Product = std::conditional_t<kType == Half::bf16, cute::MMA_Traits<cute::SM80_16x8x16_F32BF16BF16F32_TN>,
                                   cute::MMA_Traits<cute::SM80_16x8x16_F32F16F16F32_TN>>;

/// CuTe numbers the elements of A, B and C by their lines first: i + 16 k, j + 8 k, i + 16 j.
template <Half kType>
KERNEL(kLanes)
multiply_by_cute(const uint16_t* a, const uint16_t* b, float* c) {
  using Traits = Product<kType>;
  const int lane = thread_index();
  const auto pair = [&](const uint16_t* x, const auto& layout, int first) {
    return x[layout(lane, first)] | uint32_t{x[layout(lane, first + 1)]} << 16;
  };
  uint32_t of_a[1][4], of_b[1][2];
  for (int i = 0; i < 4; ++i) of_a[0][i] = pair(a, typename Traits::ALayout{}, 2 * i);
  for (int i = 0; i < 2; ++i) of_b[0][i] = pair(b, typename Traits::BLayout{}, 2 * i);
  float sums[1][1][4];
  for (int i = 0; i < 4; ++i) sums[0][0][i] = c[typename Traits::CLayout{}(lane, i)];
  multiply_add<kType>(sums, of_a, of_b);
  for (int i = 0; i < 4; ++i) c[typename Traits::CLayout{}(lane, i)] = sums[0][0][i];
}

TEST_F(FragmentLayouts, OfProductsAreThoseOfCuTe) {
  for (const Half type : {Half::bf16, Half::f16}) {
    const auto bits = [&](int number) {
      return type == Half::bf16 ? bf16_of(static_cast<float>(number)) : f16_of(static_cast<float>(number));
    };
    Bytes a(256 * 2), b(128 * 2), c(128 * 4);
    auto* const of_a = reinterpret_cast<uint16_t*>(a.data());
    auto* const of_b = reinterpret_cast<uint16_t*>(b.data());
    auto* const sums = reinterpret_cast<float*>(c.data());
    const auto number_of_a = [](int i, int k) { return (16 * i + k) * 37 % 101 - 50; };
    const auto number_of_b = [](int j, int k) { return (16 * j + k) * 53 % 89 - 44; };
    for (int k = 0; k < 16; ++k) {
      for (int i = 0; i < 16; ++i) of_a[i + 16 * k] = bits(number_of_a(i, k));
      for (int j = 0; j < 8; ++j) of_b[j + 8 * k] = bits(number_of_b(j, k));
    }
    for (int i = 0; i < 128; ++i) sums[i] = static_cast<float>(1000 + i);
    launch(&stream_, {1, kLanes}, type == Half::bf16 ? multiply_by_cute<Half::bf16> : multiply_by_cute<Half::f16>,
           static_cast<const uint16_t*>(of_a), static_cast<const uint16_t*>(of_b), sums);
    finish();
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        int wanted = 1000 + i + 16 * j;
        for (int k = 0; k < 16; ++k) wanted += number_of_a(i, k) * number_of_b(j, k);
        EXPECT_EQ(sums[i + 16 * j], static_cast<float>(wanted)) << i << ", " << j;
      }
  }
}

/// x [32, 8]: row 8 i + r is row r of matrix i. y [32, 4]: each lane's registers.
template <bool kTransposed>
KERNEL(kLanes)
load_and_store(const uint16_t* x, uint32_t* y) {
  SHARED(Chunk, rows, kLanes);
  rows[thread_index()] = load_vector<Chunk>(x + thread_index() * kChunk);
  sync_block();
  uint32_t loaded[4];
  load_matrices<kTransposed>(loaded, [&](int lane) { return rows + lane; });
  for (int i = 0; i < 4; ++i) y[thread_index() * 4 + i] = loaded[i];
}

/// CuTe numbers bits of a copy: where a source and a destination have the same number, there the bit goes.
template <class Copy>
std::vector<uint16_t> loaded_by_cute() {
  std::vector<uint16_t> element_of(kLanes * kChunk), loaded(kLanes * kChunk);
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < kChunk; ++i)
      element_of[static_cast<size_t>(typename Copy::SrcLayout{}(lane, 16 * i)) / 16] = static_cast<uint16_t>(lane * kChunk + i);
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < kChunk; ++i)
      loaded[static_cast<size_t>(lane * kChunk + i)] = element_of[static_cast<size_t>(typename Copy::DstLayout{}(lane, 16 * i)) / 16];
  return loaded;
}

TEST_F(FragmentLayouts, OfLoadedMatricesAreThoseOfCuTe) {
  for (const bool transposed : {false, true}) {
    Bytes x(kLanes * kChunk * 2), y(kLanes * kChunk * 2);
    auto* const elements = reinterpret_cast<uint16_t*>(x.data());
    for (int i = 0; i < kLanes * kChunk; ++i) elements[i] = static_cast<uint16_t>(i);
    launch(&stream_, {1, kLanes}, transposed ? load_and_store<true> : load_and_store<false>, static_cast<const uint16_t*>(elements),
           reinterpret_cast<uint32_t*>(y.data()));
    finish();
    const std::vector<uint16_t> wanted = transposed ? loaded_by_cute<cute::Copy_Traits<cute::SM75_U16x8_LDSM_T>>()
                                                    : loaded_by_cute<cute::Copy_Traits<cute::SM75_U32x4_LDSM_N>>();
    const auto* const loaded = reinterpret_cast<const uint16_t*>(y.data());
    EXPECT_EQ(std::vector<uint16_t>(loaded, loaded + wanted.size()), wanted) << (transposed ? "transposed" : "as it is");
  }
}

/// `Swizzle`: of the numbers of elements in a stage whose lines (rows of K) are one after the other.
template <int kLines, bool kAlongK, class Swizzle>
void expect_places_of() {
  using Places = ChunkedFactor<kLines, kAlongK, kLanes>;
  constexpr int kAcross = kAlongK ? kLines : kHalfDepth;
  for (int across = 0; across < kAcross; ++across)
    for (int chunk = 0; chunk < Places::kPerLine; ++chunk)
      EXPECT_EQ(Places::place(across, chunk) * kChunk, Swizzle::apply((across * Places::kPerLine + chunk) * kChunk))
          << across << ", " << chunk;
}

TEST_F(FragmentLayouts, OfProductsInSharedMemoryAreCuTesSwizzles) {
  expect_places_of<64, true, cute::Swizzle<2, 3, 3>>();
  expect_places_of<128, true, cute::Swizzle<2, 3, 3>>();
  expect_places_of<64, false, cute::Swizzle<3, 3, 3>>();
  expect_places_of<128, false, cute::Swizzle<3, 3, 4>>();
}

/// Tiles where CuTe's layout of rows of 128 bytes puts them, and sums where its fragment of a warp group has them.
KERNEL(kGroupThreads)
multiply_tiles_by_cute(const uint16_t* a, const uint16_t* b, float* c) {
  SHARED(RingTile, of_a, 1);
  SHARED(RingTile, of_b, 1);
  // CuTe's swizzles of shared memory are of bytes.
  using Swizzle = decltype(cute::GMMA::Layout_K_SW128_Atom<uint16_t>{}.layout_a());
  for (int i = thread_index(); i < kRingRows * kTileColumns; i += kGroupThreads) {
    const int place = Swizzle::apply(i * 2) / 2;
    of_a->at[place] = a[i];
    of_b->at[place] = b[i];
  }
  fence_proxy();
  sync_block();
  float sums[32];
  begin_products();
  multiply_ring_tiles(sums, of_a, of_b, false);
  commit_products();
  wait_products<0>(sums);
  for (int i = 0; i < 32; ++i) c[cute::SM90::GMMA::CLayout_64x64{}(thread_index(), i)] = sums[i];
}

TEST_F(FragmentLayouts, OfTilesAreThoseOfCuTe) {
  Bytes a(4096 * 2), b(4096 * 2), c(4096 * 4);
  const auto number_of_a = [](int i, int k) { return (64 * i + k) * 37 % 101 - 50; };
  const auto number_of_b = [](int j, int k) { return (64 * j + k) * 53 % 89 - 44; };
  for (int i = 0; i < 4096; ++i) {
    reinterpret_cast<uint16_t*>(a.data())[i] = bf16_of(static_cast<float>(number_of_a(i / 64, i % 64)));
    reinterpret_cast<uint16_t*>(b.data())[i] = bf16_of(static_cast<float>(number_of_b(i / 64, i % 64)));
  }
  launch(&stream_, {1, kGroupThreads}, multiply_tiles_by_cute, reinterpret_cast<const uint16_t*>(a.data()),
         reinterpret_cast<const uint16_t*>(b.data()), reinterpret_cast<float*>(c.data()));
  finish();
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) {
      int wanted = 0;
      for (int k = 0; k < 64; ++k) wanted += number_of_a(i, k) * number_of_b(j, k);
      EXPECT_EQ(reinterpret_cast<const float*>(c.data())[i + 64 * j], static_cast<float>(wanted)) << i << ", " << j;
    }
}

}  // namespace
}  // namespace st::cuda
