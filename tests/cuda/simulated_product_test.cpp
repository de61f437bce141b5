// Products of the CUDA plug-in on the simulated grid: their errors against the cpu's, and bits that depend on no tile. Conformance of all
// shapes is tested on the device that they are part of (cuda-simulated).
#include <gtest/gtest.h>

#include <cmath>

#include <device/launch.h>

#include "backend/cuda/float_product.cuh"
#include "backend/cuda/half_product.cuh"
#include "backend/cuda/product_tiles.h"
#include "backend/reference/elements.h"
#include "gemm/problem.h"
#include "grid_engine.h"
#include "product_errors.h"
#include "simulated_kernels.h"
#include "thrown_error.h"

namespace st::cuda {
namespace {

/// An operand with its memory.
struct Matrix {
  Matrix(DType type, const Shape& shape)
      : bytes(shape.elements() * bytes_of(type)), dtype(type), operand{address_of(bytes.data()), type, shape} {}
  Matrix(Matrix&&) = default;
  double at(int64_t i) const { return reference::get(operand, i); }

  Bytes bytes;
  DType dtype;
  Operand operand;
};

Matrix normal(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> deviate;
  Matrix x(dtype, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) reference::set(x.operand, i, deviate(random));
  return x;
}

Matrix magnitudes(DType dtype, const Shape& shape, uint64_t seed) {
  Matrix x = normal(dtype, shape, seed);
  for (int64_t i = 0; i < shape.elements(); ++i) reference::set(x.operand, i, std::abs(x.at(i)));
  return x;
}

class ProductKernels : public KernelTest {
 protected:
  ProductKernels() : KernelTest(Order::late) {}

  enum class Where { device, cpu };
  std::vector<Matrix> run(Where where, Op op, const std::vector<Matrix>& in, const std::vector<Tensor>& out, const Attrs& given) {
    const Attrs attrs = make_attrs(op, given);
    std::vector<Operand> of_in, of_out;
    for (const Matrix& x : in) of_in.push_back(x.operand);
    std::vector<Matrix> made;
    for (const auto& [dtype, shape] : out) of_out.push_back(made.emplace_back(dtype, shape).operand);
    Call call;
    call.in = of_in;
    call.out = of_out;
    call.attrs = &attrs;
    where == Where::device ? run_on_device(op, call) : run_on_cpu(op, call);
    for (Matrix& y : made) y.bytes.taken();
    return made;
  }

  void expect_errors(DType dtype, DType result, const Sizes& sizes, Matrix (*numbers)(DType, const Shape&, uint64_t) = normal) {
    const auto& [m, n, k, transpose_a, transpose_b] = sizes;
    std::vector<Matrix> in;
    in.push_back(numbers(dtype, transpose_a ? Shape{k, m} : Shape{m, k}, 1));
    in.push_back(numbers(dtype, transpose_b ? Shape{n, k} : Shape{k, n}, 2));
    Attrs attrs = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
    if (result != dtype) attrs.set("result", std::string("f32"));
    const Matrix made = std::move(run(Where::device, Op::matmul, in, {{result, {m, n}}}, attrs)[0]);
    const Matrix by_cpu = std::move(run(Where::cpu, Op::matmul, in, {{result, {m, n}}}, attrs)[0]);
    expect_errors_of_the_cpu(sizes, in[0], in[1], made, by_cpu);
  }
};

TEST_F(ProductKernels, HaveErrorsOfTheCpu) {
  for (const Sizes& sizes :
       {Sizes{37, 53, 300, false, false}, Sizes{64, 72, 2048, false, true}, Sizes{66, 8, 1030, true, false}, Sizes{5, 70, 40, true, true}})
    for (const DType dtype : kFloats) {
      expect_errors(dtype, dtype, sizes);
      if (dtype != DType::f32) expect_errors(dtype, DType::f32, sizes);
    }
}

// Cut sums are too small where all terms are positive. Sums over K of 32 to 256 come nearest to the bound, since the cpu rounds few.
TEST_F(ProductKernels, HaveErrorsOfTheCpuIfTensorCoresCutSums) {
  for (const probe::Model* const model : {&probe::kTensorCore16, &probe::kTensorCoreOfA100}) {
    const simulated::CutSums cut(*model);
    for (const DType dtype : {DType::bf16, DType::f16}) {
      SCOPED_TRACE(text("groups of ", model->group, ", ", dtype));
      expect_errors(dtype, dtype, {37, 53, 300, false, false});
      for (const Sizes& sizes : {Sizes{64, 64, 32, false, true}, Sizes{64, 64, 64, true, true}, Sizes{33, 64, 128, false, false},
                                 Sizes{64, 64, 256, true, false}, Sizes{5, 40, 1030, true, true}})
        for (auto* const numbers : {normal, magnitudes}) expect_errors(dtype, DType::f32, sizes, numbers);
    }
  }
}

TEST_F(ProductKernels, OfALongKHaveErrorsOfTheCpuIfTensorCoresCutSums) {
  const simulated::CutSums cut;
  expect_errors(DType::f16, DType::f32, {16, 8, 4 * kSumSlice, false, true}, magnitudes);
}

// A sum of 2^24 does not change by 1 (one in fp64 of 2^53), but by what a slice of K makes of many.
TEST_F(ProductKernels, AddTheSumsOfSlicesOfALongK) {
  constexpr int64_t m = 3, n = 8, k = 2 * kSumSlice + 40;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const double factor = dtype == DType::f64 ? 0x1p41 : 0x1p12;
    std::vector<Matrix> in;
    in.push_back(Matrix(dtype, {m, k}));
    in.push_back(Matrix(dtype, {n, k}));
    int64_t ones = 0;
    for (int64_t e = 0; e < k; ++e) {
      const bool is_added = e == 0 || (e >= kSumSlice && e % kFloatBlock == 0) || e == 2 * kSumSlice + 8;
      if (is_added && e > 0) ++ones;
      for (int64_t row = 0; row < m; ++row) reference::set(in[0].operand, row * k + e, e == 0 ? factor : is_added ? 1 : 0);
      for (int64_t row = 0; row < n; ++row) reference::set(in[1].operand, row * k + e, e == 0 ? 0x1p12 : 1);
    }
    for (const ProductTile& tile : product_tiles(dtype)) {
      const Matrix made = std::move(run(Where::device, Op::matmul, in, {{dtype == DType::f64 ? dtype : DType::f32, {m, n}}},
                                        {{"transpose_b", true},
                                         {"result", std::string(dtype == DType::f64 ? "same" : "f32")},
                                         {"tiles", Ints{0, 0, tile.rows, tile.columns, 0, 0, 0, 0, 0}}})[0]);
      for (int64_t i = 0; i < m * n; ++i)
        ASSERT_EQ(made.at(i) - factor * 0x1p12, static_cast<double>(ones))
            << text(dtype, ", tile ", tile.rows, "x", tile.columns, ", K ", k, ", element ", i);
    }
  }
}

TEST_F(ProductKernels, HaveTheSameBitsInAnyTileAndOrder) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    std::vector<Matrix> in;
    in.push_back(normal(dtype, {150, 300}, 1));
    in.push_back(normal(dtype, {300, 70}, 2));
    std::vector<uint8_t> first;
    for (const ProductTile& tile : product_tiles(dtype))
      for (const uint64_t seed : {1, 2}) {
        simulated::set_seed(seed);
        auto made = run(Where::device, Op::matmul, in, {{dtype, {150, 70}}},
                        {{"tiles", Ints{0, 0, tile.rows, tile.columns, tile.depth, 0, 0, 0, 0}}});
        simulated::set_seed(1);
        if (first.empty()) first = made[0].bytes.taken();
        EXPECT_EQ(differences(made[0].bytes.taken(), first, dtype), 0) << text(dtype, " ", tile.rows, "x", tile.columns, ", seed ", seed);
      }
    // A row of it alone.
    std::vector<Matrix> row;
    row.push_back(Matrix(dtype, {1, 300}));
    row.push_back(normal(dtype, {300, 70}, 2));
    const auto width = static_cast<int64_t>(bytes_of(dtype));
    std::copy_n(in[0].bytes.data() + 149 * 300 * width, 300 * width, row[0].bytes.data());
    auto made = run(Where::device, Op::matmul, row, {{dtype, {1, 70}}}, {});
    EXPECT_EQ(differences(made[0].bytes.taken(), {first.end() - 70 * width, first.end()}, dtype), 0) << name_of(dtype);
  }
}

/// A product with all that may follow it, forward or backward, and its results.
struct Fused {
  Attrs attrs;
  std::vector<Matrix> in = {};
  std::vector<Tensor> out = {};
};

/// y, and what else there is: the pre-activation forward, the column sums of both.
Fused fused(const Sizes& sizes, DType dtype, DType result, bool is_backward) {
  const auto& [m, n, k, transpose_x, transpose_weight] = sizes;
  Fused made{.attrs = {{"transpose_weight", transpose_weight}, {"bias", true}, {"residual", true}, {"column_sums", true}}};
  made.attrs.set("activation", std::string(is_backward ? "gelu_tanh" : "silu"));
  made.attrs.set(is_backward ? "backward" : "pre_activation", true);
  if (result != dtype) made.attrs.set("result", std::string("f32"));
  made.in.push_back(normal(dtype, {m, k}, 1));
  made.in.push_back(normal(dtype, transpose_weight ? Shape{n, k} : Shape{k, n}, 2));
  made.in.push_back(normal(result, {n}, 3));
  if (is_backward) made.in.push_back(normal(result, {m, n}, 4));
  made.in.push_back(normal(result, {m, n}, 5));
  made.out.push_back({result, {m, n}});
  if (!is_backward) made.out.push_back({result, {m, n}});
  made.out.push_back({result, {n}});
  return made;
}

// Without `tiles` a product takes a large tile from 128 blocks on, which no test has the time for. Conformance has the numbers of the
// smallest tile. There are three tiles of the largest each way, ragged: C read and written by elements, and in vectors.
TEST_F(ProductKernels, FinishTheirRowsAlikeInAnyTile) {
  constexpr std::pair<DType, DType> kTypes[] = {
      {DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}, {DType::f16, DType::f16}};
  for (const auto& [dtype, result] : std::span(kTypes).first(kSanitized ? 2 : std::size(kTypes)))
    for (const bool is_backward : {false, true}) {
      const Sizes sizes = is_backward ? Sizes{261, 264, 38, false, true} : Sizes{261, 261, 38, false, false};
      const Fused product = fused(sizes, dtype, result, is_backward);
      std::vector<std::vector<uint8_t>> wanted;
      const auto tiles = product_tiles(dtype);
      for (auto tile = tiles.rbegin(); tile != tiles.rend(); ++tile) {
        Attrs attrs = product.attrs;
        attrs.set("tiles", Ints{0, 0, tile->rows, tile->columns, tile->depth, 0, 0, 0, 0});
        std::vector<Matrix> made = run(Where::device, Op::fused_linear, product.in, product.out, attrs);
        for (size_t i = 0; i < made.size(); ++i) {
          if (tile == tiles.rbegin()) wanted.push_back(made[i].bytes.taken());
          EXPECT_EQ(differences(made[i].bytes.taken(), wanted[i], result), 0)
              << text(dtype, " to ", result, ", ", tile->rows, "x", tile->columns, is_backward ? ", backward" : "", ", output ", i);
        }
      }
    }
}

// Sums of small whole numbers are exact in any order.
TEST_F(ProductKernels, MultiplyWholeNumbersExactlyInEachTileAndLayout) {
  const auto whole = [](DType dtype, const Shape& shape, int64_t factor) {
    Matrix x(dtype, shape);
    for (int64_t i = 0; i < shape.elements(); ++i) reference::set(x.operand, i, static_cast<double>(i * factor % 9 - 4));
    return x;
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64})
    for (const ProductTile& tile : product_tiles(dtype))
      for (const Sizes& sizes : {Sizes{133, 72, 72, false, false}, Sizes{133, 72, 72, false, true}, Sizes{133, 72, 72, true, false},
                                 Sizes{133, 72, 72, true, true}, Sizes{16, 137, 40, false, false}, Sizes{16, 136, 40, true, true},
                                 Sizes{1160, 136, 3, false, false}}) {  // a group of 8 rows of tiles, and one of 2
        const auto& [m, n, k, transpose_a, transpose_b] = sizes;
        std::vector<Matrix> in;
        in.push_back(whole(dtype, transpose_a ? Shape{k, m} : Shape{m, k}, 37));
        in.push_back(whole(dtype, transpose_b ? Shape{n, k} : Shape{k, n}, 23));
        const Matrix made = std::move(run(Where::device, Op::matmul, in, {{dtype == DType::f64 ? dtype : DType::f32, {m, n}}},
                                          {{"transpose_a", transpose_a},
                                           {"transpose_b", transpose_b},
                                           {"result", std::string(dtype == DType::f64 ? "same" : "f32")},
                                           {"tiles", Ints{0, 0, tile.rows, tile.columns, 0, 0, 0, 0, 0}}})[0]);
        std::vector<double> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
        for (int64_t i = 0; i < m * k; ++i) a[static_cast<size_t>(i)] = in[0].at(i);
        for (int64_t i = 0; i < k * n; ++i) b[static_cast<size_t>(i)] = in[1].at(i);
        int64_t wrong = 0;
        for (int64_t i = 0; i < m * n; ++i) {
          double sum = 0;
          for (int64_t e = 0; e < k; ++e)
            sum += a[static_cast<size_t>(transpose_a ? e * m + i / n : i / n * k + e)] *
                   b[static_cast<size_t>(transpose_b ? i % n * k + e : e * n + i % n)];
          if (made.at(i) != sum) ++wrong;
        }
        EXPECT_EQ(wrong, 0) << text(dtype, ", tile ", tile.rows, "x", tile.columns, ", ", m, "x", n, "x", k, ", ", transpose_a,
                                    transpose_b);
      }
}

// As an iteration of Muon has them: one matrix of X for all, columns of X, and what is there already.
TEST_F(ProductKernels, AddToWhatIsThere) {
  constexpr int64_t m = 21, n = 40, k = 24, batch = 3;
  for (const DType dtype : kFloats) {
    GemmProblem p;
    p.m = m, p.n = n, p.k = k, p.batch = batch;
    p.a = {1, m}, p.a_batch = 0;
    p.b = {n, 1}, p.b_batch = k * n;
    p.c = {n, 1}, p.c_batch = m * n;
    p.a_type = p.b_type = p.c_type = dtype;
    p.alpha = 2, p.beta = -0.5;
    const Matrix a = normal(dtype, {k, m}, 1), b = normal(dtype, {batch, k, n}, 2), before = normal(dtype, {batch, m, n}, 3);
    Matrix c = normal(dtype, {batch, m, n}, 3);
    enqueue_gemm(&stream_, p, as<const void>(a.operand), as<const void>(b.operand), as<void>(c.operand), nullptr);
    finish();
    c.bytes.taken();
    double largest = 0;
    for (int64_t i = 0; i < batch * m * n; ++i) {
      const int64_t matrix = i / (m * n), row = i / n % m, column = i % n;
      double sum = -0.5 * before.at(i);
      for (int64_t e = 0; e < k; ++e) sum += 2 * a.at(e * m + row) * b.at((matrix * k + e) * n + column);
      largest = std::max(largest, std::abs(c.at(i) - sum) - unit_at(sum, dtype));
    }
    EXPECT_LE(largest, (k + 2) * 0x1p-20) << name_of(dtype);  // so many roundings, each of a number below 32
    p.a = {7, 3};
    EXPECT_EQ(error_of([&] { enqueue_gemm(&stream_, p, nullptr, nullptr, nullptr, nullptr); }).message(),
              "gemm: device cuda reads rows or columns without gaps, got strides of 7 and 3 in A");
  }
}

TEST_F(ProductKernels, AddColumnsLikeTheOpSum) {
  for (const DType dtype : kFloats)
    for (const int64_t rows : {1, 32, 107}) {
      const Shape of_y = {rows, 71};
      std::vector<Matrix> in;
      in.push_back(normal(dtype, {rows, 40}, 1));
      in.push_back(normal(dtype, {40, 71}, 2));
      std::vector<Matrix> made = run(Where::device, Op::fused_linear, in, {{dtype, of_y}, {dtype, {71}}}, {{"column_sums", true}});
      std::vector<Matrix> y;
      y.push_back(std::move(made[0]));
      std::vector<Matrix> wanted = run(Where::device, Op::sum, y, {{dtype, {71}}}, {{"axes", Ints{0}}});
      EXPECT_EQ(differences(made[1].bytes.taken(), wanted[0].bytes.taken(), dtype), 0) << text(dtype, ", ", rows, " rows");
    }
}

/// The rows that one ldmatrix reads of a matrix: 8 chunks of 16 bytes, which shared memory gives at once if they differ modulo 128 bytes.
TEST_F(ProductKernels, HaveTheRowsOfAMatrixInDifferentBanks) {
  using AlongK = ChunkedFactor<64, true, 128>;
  using AcrossK = ChunkedFactor<64, false, 128>;
  using Wide = ChunkedFactor<128, false, 256>;
  for (int chunk = 0; chunk < 16; ++chunk)
    for (int first = 0; first < 32; first += 8) {
      std::vector<int> along, across, wide;
      for (int row = first; row < first + 8; ++row) {
        along.push_back(AlongK::place(row, chunk % 4) % 8);
        across.push_back(AcrossK::place(row, chunk % 8) % 8);
        wide.push_back(Wide::place(row, chunk) % 8);
      }
      for (auto* const slots : {&along, &across, &wide}) {
        std::ranges::sort(*slots);
        EXPECT_EQ(*slots, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
      }
    }
}

TEST_F(ProductKernels, OfOtherTypesAndTilesAreRefused) {
  const auto message = [&](DType dtype, const Attrs& given) {
    std::vector<Matrix> in;
    in.push_back(Matrix(dtype, {4, 4}));
    in.push_back(Matrix(dtype, {4, 4}));
    return error_of([&] { run(Where::device, Op::matmul, in, {{dtype, {4, 4}}}, given); }).message();
  };
  EXPECT_EQ(message(DType::i32, {}), "matmul: device cuda multiplies f32, bf16, f16 and f64, got i32; cast first");
  EXPECT_EQ(message(DType::f32, {{"tiles", Ints{0, 0, 256, 128, 0, 0, 0, 0, 0}}}),
            "matmul: a tile of 256x128x16 takes 49152 bytes of shared memory, and 256 registers a thread for its sums; device cuda has "
            "128x64x16, 64x64x16; ask for one of these, or leave tiles out");
  EXPECT_EQ(message(DType::bf16, {{"tiles", Ints{0, 0, 256, 256, 0, 0, 0, 0, 0}}}),
            "matmul: a tile of 256x256x32 takes 98304 bytes of shared memory, and 512 registers a thread for its sums; device cuda has "
            "128x128x32, 128x64x32, 64x64x32; ask for one of these, or leave tiles out");
}

// As on sm_86, sm_89 and sm_120, where a block has 99 KiB.
TEST_F(ProductKernels, OfALongKHaveTilesForWhichADeviceHasSharedMemory) {
  TiledProduct product = {.dtype = DType::f16, .m = 2048, .n = 2048, .matrices = 1, .has_slices = true, .block_shared = 163 << 10};
  const Attrs any = make_attrs(Op::matmul, {});
  EXPECT_EQ(product_tile("matmul", product, any), product_tiles(DType::f16)[0]);
  product.block_shared = 99 << 10;
  EXPECT_EQ(product_tile("matmul", product, any), product_tiles(DType::f16)[1]);
  const struct Limit {
    Limit() { simulated::shared_limit = 99 << 10; }
    ~Limit() { simulated::shared_limit = simulated::kSharedBytes; }
  } limit;
  std::vector<Matrix> in;
  in.push_back(Matrix(DType::f16, {1, kSumSlice + 1}));
  in.push_back(Matrix(DType::f16, {kSumSlice + 1, 1}));
  const Attrs asked = {{"result", std::string("f32")}, {"tiles", Ints{0, 0, 128, 128, 0, 0, 0, 0, 0}}};
  EXPECT_EQ(error_of([&] {
              run(Where::device, Op::matmul, in, {{DType::f32, {1, 1}}}, asked);
            }).message(),
            "matmul: a tile of 128x128x32 takes 114688 bytes of shared memory, and 128 registers a thread for its sums; device cuda has "
            "128x64x32, 64x64x32; ask for one of these, or leave tiles out");
}

}  // namespace
}  // namespace st::cuda
