// Operations fused into st_gemm_run, compared with formulas in double precision.
#include <array>
#include <functional>

#include "gemm_case.h"

namespace {

using namespace st::test;

constexpr int64_t kRows = 50, kColumns = 77, kInner = 40;

struct Curve {
  st_activation activation;
  double (*value)(double x), (*slope)(double x);
};

double relu(double x) { return x > 0 ? x : 0; }
double step(double x) { return x > 0 ? 1 : 0; }
double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu_erf(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); }
/// By finite differences, to about 1e-9.
template <double (*f)(double)>
double slope_of(double x) {
  return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
}

constexpr Curve kCurves[] = {{ST_ACTIVATION_RELU, relu, step},
                             {ST_ACTIVATION_GELU_TANH, gelu_tanh, slope_of<gelu_tanh>},
                             {ST_ACTIVATION_GELU_ERF, gelu_erf, slope_of<gelu_erf>},
                             {ST_ACTIVATION_SILU, silu, slope_of<silu>}};

/// A product with all arrays that its epilogue may have, on each device.
struct Fused {
  explicit Fused(const char* device, bool column_major = false, int64_t batch = 1)
      : x({kRows, kColumns, kInner, batch, false, false, column_major}),
        residual(like(4)),
        pre(like(5)),
        kept(like(0)),
        bias(numbers(kColumns, 6)),
        sums(kColumns),
        epilogue(filled(st_epilogue_init)) {
    auto options = filled(st_context_options_init);
    options.device = device;
    options.threads = 2;
    EXPECT_TRUE(works(st_context_create(&options, context.out())));
    gemm = x.plan(context);
  }

  Matrices like(uint32_t seed) const {  // of C's dims, in rows with gaps
    return {ST_F32, x.shape.batch, kRows, kColumns, kColumns + 3, 1, kRows * (kColumns + 3), seed};
  }
  template <class Expected>
  void expect(const Matrices& found, const Expected& expected) const {
    for (int64_t e = 0; e < x.shape.batch; ++e)
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < kColumns; ++j) {
          const auto [value, size] = x.exact(e, i, j, 1, 0, x.c);
          ASSERT_NEAR(found.at(e, i, j), expected(e, i, j, value), 1e-5 * (1 + size)) << e << ", " << i << ", " << j;
        }
  }

  GemmCase x;
  Matrices residual, pre, kept;
  std::vector<float> bias, sums;
  int64_t vector_dims[1] = {kColumns};
  st_view bias_view{ST_F32, 1, vector_dims, nullptr, bias.data(), kColumns * 4};
  st_view sums_view{ST_F32, 1, vector_dims, nullptr, sums.data(), kColumns * 4};
  st_epilogue epilogue;
  HeldContext context;
  HeldGemm gemm;
};

TEST(GemmEpilogue, AddsBiasKeepsWhatWasBeforeActivatesAndAddsTheResidual) {
  for (const char* device : {"cpu", "reference"}) {
    for (const bool column_major : {false, true}) {
      for (const Curve& curve : kCurves) {
        Fused f(device, column_major, 2);
        const st_view kept = f.kept.view(true), residual = f.residual.view(true);
        f.epilogue.activation = curve.activation;
        f.epilogue.bias = &f.bias_view;
        f.epilogue.pre_activation = &kept;
        f.epilogue.residual = &residual;
        ASSERT_TRUE(works(f.x.run(f.gemm, 1, 0, nullptr, &f.epilogue)));
        const auto before = [&](int64_t, int64_t, int64_t j, double value) { return value + double{f.bias[static_cast<size_t>(j)]}; };
        f.expect(f.kept, before);
        f.expect(f.x.c,
                 [&](int64_t e, int64_t i, int64_t j, double v) { return curve.value(before(e, i, j, v)) + f.residual.at(e, i, j); });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(GemmEpilogue, MultipliesByTheActivationsDerivative) {
  for (const char* device : {"cpu", "reference"}) {
    for (const Curve& curve : kCurves) {
      Fused f(device);
      const st_view at = f.pre.view();
      f.epilogue.activation = curve.activation;
      f.epilogue.derivative_at = &at;
      ASSERT_TRUE(works(f.x.run(f.gemm, 1, 0, nullptr, &f.epilogue)));
      f.expect(f.x.c, [&](int64_t e, int64_t i, int64_t j, double v) { return v * curve.slope(f.pre.at(e, i, j)); });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(GemmEpilogue, SumsTheFinishedColumnsOverTheBatch) {
  for (const char* device : {"cpu", "reference"}) {
    Fused f(device, false, 3);
    f.epilogue.column_sums = &f.sums_view;
    f.epilogue.activation = ST_ACTIVATION_RELU;
    ASSERT_TRUE(works(f.x.run(f.gemm, 1, 0, nullptr, &f.epilogue)));
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < 3 * kRows; ++r) sum += f.x.c.at(r / kRows, r % kRows, j);
      ASSERT_NEAR(double{f.sums[static_cast<size_t>(j)]}, sum, 1e-4) << device;
    }
  }
}

TEST(GemmEpilogue, BackwardThroughAnActivationIntoBf16OverSeveralPiecesOfKHasTheSameBitsOfAPackedB) {
  for (const st_dtype operands : {ST_F32, ST_BF16}) {
    GemmShape shape{50, 77, 2500};
    shape.a_dtype = shape.b_dtype = operands, shape.c_dtype = ST_BF16;
    GemmCase x(shape), again(shape);
    auto options = filled(st_context_options_init);
    options.threads = 2;
    const auto context = hold<HeldContext>(st_context_create, &options);
    const HeldGemm gemm = x.plan(context);
    const auto info = filled(st_gemm_info_init, st_gemm_plan_info, gemm);
    ASSERT_LT(info.tile_k, shape.k);
    Matrices pre(ST_BF16, 1, 50, 77, 80, 1, 4000, 5), sums(ST_BF16, 1, 1, 77, 77, 1, 77, 0), sums_packed = sums;
    const st_view at = pre.view();
    const int64_t columns[] = {77};
    auto epilogue = filled(st_epilogue_init);
    epilogue.activation = ST_ACTIVATION_GELU_TANH;
    epilogue.derivative_at = &at;
    const auto run = [&](GemmCase& of, Matrices& into, st_packed* packed) {
      st_view vector = into.view();
      vector.rank = 1, vector.dims = columns, vector.strides = nullptr;
      epilogue.column_sums = &vector;
      return of.run(gemm, 1, 0, packed, &epilogue);
    };
    ASSERT_TRUE(works(run(x, sums, nullptr)));
    for (int64_t j = 0; j < 77; ++j) {
      double sum = 0, sizes = 0;
      for (int64_t i = 0; i < 50; ++i) {
        const auto [value, size] = x.exact(0, i, j, 1, 0, x.c);
        const double slope = slope_of<gelu_tanh>(pre.at(0, i, j));
        // The product and its product with the slope are both rounded, as separate ops would do.
        ASSERT_NEAR(x.c.at(0, i, j), value * slope, std::abs(value * slope) * 0x1p-7 + std::abs(slope) * 0x1p-24 * 204 * size + 1e-6)
            << i << ", " << j;
        sum += x.c.at(0, i, j), sizes += std::abs(x.c.at(0, i, j));
      }
      ASSERT_NEAR(sums.at(0, 0, j), sum, std::abs(sum) * 0x1p-8 + sizes * 0x1p-18) << "50 terms in fp32, rounded once";
    }
    const HeldPacked packed = again.packed(gemm);
    ASSERT_TRUE(works(run(again, sums_packed, packed)));
    EXPECT_EQ(again.c.bytes(), x.c.bytes());
    EXPECT_EQ(sums_packed.bytes(), sums.bytes());
  }
}

}  // namespace
