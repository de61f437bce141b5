// A library's product equals the double-precision product up to rounding, with the same bits for any number of threads and with a packed B;
// the epilogue is ours. Tested with a library made for tests and with every library on this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cpu_kernel.h"
#include "gemm/gemm_library.h"
#include "parts/gemm_plan.h"
#include "plain_problem.h"

namespace st {
namespace {

std::vector<const GemmLibrary*> libraries() {
  static const GemmLibrary able("openblas", ST_LIBRARIES "/libable_blas.so");
  std::vector<const GemmLibrary*> all = {&able};
  for (const auto& library : gemm_libraries().found) all.push_back(library.get());
  return all;
}

struct Case {
  const char* name;
  GemmProblem p;
};

std::vector<Case> cases() {
  const auto of = plain_problem;
  GemmProblem both = of(131, 97, 60), columns = of(70, 333, 41), gaps = of(33, 50, 20), batched = of(9, 33, 40), biased = of(40, 120, 33),
              turned = of(35, 90, 30), stretched = of(17, 29, 31);
  both.a = {1, 131}, both.b = {1, 60};
  columns.c = {1, 70};
  gaps.a = {27, 1}, gaps.b = {60, 1}, gaps.c = {53, 1};
  batched.batch = 3, batched.a_batch = 360, batched.c_batch = 297;
  biased.bias = true;
  turned.c = {1, 35}, turned.bias = true;
  stretched.batch = 2, stretched.a_batch = 17 * 31, stretched.b_batch = 29 * 31, stretched.c_batch = 17 * 29;
  return {{"plain", of(37, 101, 51)},   {"slices", of(800, 900, 40)},
          {"long", of(1030, 20, 30)},   {"one row", of(1, 80, 50)},
          {"one column", of(50, 1, 9)}, {"transposes", both},
          {"columns", columns},         {"gaps", gaps},
          {"shared B", batched},        {"bias", biased},
          {"bias of columns", turned},  {"batch", stretched}};
}

struct Arrays {
  explicit Arrays(const GemmProblem& p)
      : a(random_floats(size(p.m, p.k, p.a, p.batch, p.a_batch), 1)),
        b(random_floats(size(p.k, p.n, p.b, p.batch, p.b_batch), 2)),
        c(random_floats(size(p.m, p.n, p.c, p.batch, p.c_batch), 3)),
        bias(random_floats(p.n, 4)) {}
  static int64_t size(int64_t rows, int64_t columns, MatrixStrides at, int64_t batch, int64_t step) {
    return (rows - 1) * at.row + (columns - 1) * at.column + (batch - 1) * step + 1;
  }
  std::vector<float> a, b, c, bias;
};

GemmPlan plan_of(const CpuSet& set, const GemmProblem& p, const GemmLibrary* library, int threads) {
  GemmWish wish;
  wish.tiles.library = library;
  return {*set.gemm, choose_gemm(*set.gemm, p, wish, threads), std::make_unique<Workers>(threads), std::make_shared<MemorySource>()};
}

std::vector<float> product_of(const CpuSet& set, const GemmProblem& p, const GemmLibrary* library, int threads, float alpha, float beta,
                              bool packed = false) {
  Arrays x(p);
  if (beta == 0)
    for (float& c : x.c) c = std::numeric_limits<float>::quiet_NaN();  // must not be read
  GemmPlan plan = plan_of(set, p, library, threads);
  EXPECT_EQ(plan.choice().schedule.library, library);
  GemmOperands operands{x.a.data(), x.b.data(), x.c.data(), p.bias ? x.bias.data() : nullptr};
  std::unique_ptr<PackedMatrix> of_b;
  if (packed) {
    of_b = std::make_unique<PackedMatrix>(plan, x.b.data(), std::make_shared<MemorySource>());
    EXPECT_TRUE(plan.fits(*of_b));
    operands.b = nullptr, operands.packed_b = of_b->data();
  }
  plan.run(operands, alpha, beta);
  return x.c;
}

void expect_right(const GemmProblem& p, const std::vector<float>& c, float alpha, float beta, const std::string& what) {
  const Arrays x(p);
  for (int64_t e = 0; e < p.batch; ++e)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        const auto at = static_cast<size_t>(e * p.c_batch + i * p.c.row + j * p.c.column);
        double sum = 0, size = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const double term = double{x.a[static_cast<size_t>(e * p.a_batch + i * p.a.row + k * p.a.column)]} *
                              double{x.b[static_cast<size_t>(e * p.b_batch + k * p.b.row + j * p.b.column)]};
          sum += term, size += std::abs(term);
        }
        sum = sum * double{alpha} + (beta == 0 ? 0.0 : double{beta} * double{x.c[at]}) +
              (p.bias ? double{x.bias[static_cast<size_t>(j)]} : 0.0);
        // Each of k + 3 roundings is of a sum no larger than the sum of magnitudes.
        const double most = 0x1p-24 * static_cast<double>(p.k + 3) * (size * std::abs(double{alpha}) + std::abs(double{beta}) + 1);
        ASSERT_NEAR(double{c[at]}, sum, most) << what << " at " << i << ", " << j;
      }
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, const std::string& what) {
  ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

TEST(LibraryProduct, IsThatOfDoublePrecisionAndTheSameBitsForAnyNumberOfThreads) {
  for (const GemmLibrary* library : libraries())
    for (const CpuSet& set : cpu_sets())
      for (const auto& [name, p] : cases()) {
        const std::string what = text(library->identity(), " ", set.name, " ", name);
        for (const auto& [alpha, beta] : {std::pair{1.0F, 0.0F}, std::pair{0.5F, -2.0F}}) {
          const auto one = product_of(set, p, library, 1, alpha, beta);
          expect_right(p, one, alpha, beta, what);
          for (const int threads : {2, 3}) expect_same_bits(product_of(set, p, library, threads, alpha, beta), one, what);
          expect_right(p, product_of(set, p, library, 2, alpha, beta, true), alpha, beta, what + " packed");
        }
        expect_right(p, product_of(set, p, library, 1, 0, 3), 0, 3, what + " without a product");
      }
  if (libraries().size() == 1) std::printf("no OpenBLAS, MKL or oneDNN is here: the library of the tests' alone was multiplied with\n");
}

TEST(LibraryProduct, WithAPackedBHasTheBitsOfThePlainOne) {
  for (const GemmLibrary* library : libraries()) {
    const CpuSet set = cpu_sets().front();
    for (const auto& [name, p] : cases())
      if (std::string_view(name) != "gaps")  // B is packed without them
        expect_same_bits(product_of(set, p, library, 2, 1, 0, true), product_of(set, p, library, 1, 1, 0), library->identity() + name);
  }
}

TEST(LibraryProduct, OfAnotherMakerIsNotMadeOfItsPackedB) {
  const CpuSet set = cpu_sets().back();
  const GemmProblem p = cases()[0].p;
  GemmPlan own = plan_of(set, p, nullptr, 1), theirs = plan_of(set, p, libraries()[0], 1);
  const std::vector<float> b = random_floats(p.k * p.n, 2);
  const PackedMatrix packed(own, b.data(), std::make_shared<MemorySource>());
  EXPECT_TRUE(own.fits(packed));
  EXPECT_FALSE(theirs.fits(packed));
}

/// The stages after a library's product, in the order of gemm/epilogue.h.
TEST(LibraryProduct, HasOurEpilogueBehindItInItsOrder) {
  const GemmProblem p = plain_problem(800, 790, 20);
  const auto pre = random_floats(p.m * p.n, 7), residual = random_floats(p.m * p.n, 8);
  for (const GemmLibrary* library : libraries())
    for (const CpuSet& set : cpu_sets()) {
      Arrays x(p);
      const std::vector<float> plain = product_of(set, p, library, 1, 1, 0);
      std::vector<float> kept(plain.size()), sums(static_cast<size_t>(p.n)), expected(static_cast<size_t>(p.n));
      const auto side = [&](const std::vector<float>& data) { return GemmSide{const_cast<float*>(data.data()), p.c, 0}; };
      GemmEpilogue epilogue{GemmActivation::relu, side(kept), {}, side(residual), sums.data()};
      plan_of(set, p, library, 2).run({x.a.data(), x.b.data(), x.c.data(), nullptr, nullptr, &epilogue}, 1, 0);
      expect_same_bits(kept, plain, library->identity());
      for (size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(x.c[i], std::max(plain[i], 0.0F) + residual[i]) << set.name << " " << i;
      // Column sums in the order of the sum op: blocks of 32 rows in fp32, then the blocks in double.
      for (int64_t j = 0; j < p.n; ++j) {
        double total = 0;
        for (int64_t first = 0; first < p.m; first += 32) {
          float block = 0;
          for (int64_t i = first; i < std::min(p.m, first + 32); ++i) block += x.c[static_cast<size_t>(i * p.n + j)];
          total += double{block};
        }
        expected[static_cast<size_t>(j)] = static_cast<float>(total);
      }
      EXPECT_EQ(sums, expected) << set.name;

      epilogue = {GemmActivation::relu, {}, side(pre), {}, nullptr};
      plan_of(set, p, library, 2).run({x.a.data(), x.b.data(), x.c.data(), nullptr, nullptr, &epilogue}, 1, 0);
      for (size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(x.c[i], pre[i] > 0 ? plain[i] : 0.0F) << set.name << " " << i;
    }
}

}  // namespace
}  // namespace st
