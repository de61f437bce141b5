// The cpu attention against the textbook in double precision: every instruction set, shapes around the block size, grouped queries,
// T != S, rows that see nothing, and the same bits for any number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "cpu_kernel.h"

namespace st {
namespace {

struct Case {
  int64_t batch, queries, heads, width, keys, groups;
  bool causal;
};

// 48, 96 and 112 are the sets' block sizes: shapes below, at and above them, and ragged in every dimension.
constexpr Case kCases[] = {
    {1, 1, 1, 1, 1, 1, true},      {2, 5, 2, 3, 5, 2, true},        {1, 112, 2, 16, 112, 2, true}, {1, 113, 2, 64, 113, 1, true},
    {2, 250, 4, 32, 250, 2, true}, {1, 37, 3, 20, 129, 3, true},    {1, 129, 2, 33, 37, 1, true},  {1, 100, 6, 64, 230, 2, false},
    {1, 1, 4, 64, 300, 1, true},   {1, 300, 1, 128, 300, 1, false}, {1, 97, 2, 8, 49, 2, false},
};

struct Truth {
  std::vector<double> o, lse, dq, dk, dv;
};

struct Inputs {
  std::vector<float> q, k, v, d_o;

  explicit Inputs(const Case& c)
      : q(random_floats(c.batch * c.queries * c.heads * c.width, 1)),
        k(random_floats(c.batch * c.keys * c.groups * c.width, 2)),
        v(random_floats(c.batch * c.keys * c.groups * c.width, 3)),
        d_o(random_floats(c.batch * c.queries * c.heads * c.width, 4)) {
    for (float& x : q) x *= 3;  // scores spread enough that the softmax is not flat
  }
};

Truth textbook(const Case& c, const Inputs& x) {
  Truth truth;
  truth.o.assign(x.q.size(), 0);
  truth.dq.assign(x.q.size(), 0);
  truth.dk.assign(x.k.size(), 0);
  truth.dv.assign(x.k.size(), 0);
  truth.lse.assign(static_cast<size_t>(c.batch * c.heads * c.queries), -std::numeric_limits<double>::infinity());
  const double scale = 1 / std::sqrt(static_cast<double>(c.width));
  std::vector<double> p(static_cast<size_t>(c.keys)), dp(p);
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t t = 0; t < c.queries; ++t) {
        const int64_t seen = c.causal ? std::clamp<int64_t>(t + c.keys - c.queries + 1, 0, c.keys) : c.keys;
        const auto row = static_cast<size_t>(((b * c.queries + t) * c.heads + h) * c.width);
        const auto key = [&](int64_t s) { return static_cast<size_t>(((b * c.keys + s) * c.groups + h / (c.heads / c.groups)) * c.width); };
        double peak = -std::numeric_limits<double>::infinity(), total = 0, delta = 0;
        for (int64_t s = 0; s < seen; ++s) {
          double score = 0, product = 0;
          for (size_t d = 0; d < static_cast<size_t>(c.width); ++d) {
            score += double{x.q[row + d]} * double{x.k[key(s) + d]};
            product += double{x.d_o[row + d]} * double{x.v[key(s) + d]};
          }
          p[static_cast<size_t>(s)] = score * scale;
          dp[static_cast<size_t>(s)] = product;
          peak = std::max(peak, score * scale);
        }
        for (size_t s = 0; s < static_cast<size_t>(seen); ++s) total += p[s] = std::exp(p[s] - peak);
        for (size_t s = 0; s < static_cast<size_t>(seen); ++s) delta += (p[s] /= total) * dp[s];
        if (seen > 0) truth.lse[static_cast<size_t>((b * c.heads + h) * c.queries + t)] = peak + std::log(total);
        for (int64_t s = 0; s < seen; ++s) {
          const double weight = p[static_cast<size_t>(s)], ds = weight * (dp[static_cast<size_t>(s)] - delta) * scale;
          for (size_t d = 0; d < static_cast<size_t>(c.width); ++d) {
            truth.o[row + d] += weight * double{x.v[key(s) + d]};
            truth.dv[key(s) + d] += weight * double{x.d_o[row + d]};
            truth.dq[row + d] += ds * double{x.k[key(s) + d]};
            truth.dk[key(s) + d] += ds * double{x.q[row + d]};
          }
        }
      }
    }
  }
  return truth;
}

struct Results {
  std::vector<float> o, lse, dq, dk, dv;
  bool operator==(const Results&) const = default;
};

Results run(const CpuSet& set, const Case& c, Inputs x, int threads) {
  const float poison = std::numeric_limits<float>::quiet_NaN();
  Results y;
  y.o.assign(x.q.size(), poison);
  y.lse.assign(static_cast<size_t>(c.batch * c.heads * c.queries), poison);
  y.dq.assign(x.q.size(), poison);
  y.dk.assign(x.k.size(), poison);
  y.dv.assign(x.k.size(), poison);
  const Shape of_q{c.batch, c.queries, c.heads, c.width}, of_k{c.batch, c.keys, c.groups, c.width};
  const auto operand = [](std::vector<float>& values, const Shape& shape) { return Operand{values.data(), DType::f32, shape}; };
  const Operand q = operand(x.q, of_q), k = operand(x.k, of_k), v = operand(x.v, of_k), o = operand(y.o, of_q);
  const Operand lse = operand(y.lse, {c.batch, c.heads, c.queries});
  EXPECT_TRUE(run_kernel(set, Op::attention, {q, k, v}, {o, lse}, {{"causal", c.causal}}, threads));
  EXPECT_TRUE(run_kernel(set, Op::attention_backward, {q, k, v, o, lse, operand(x.d_o, of_q)},
                         {operand(y.dq, of_q), operand(y.dk, of_k), operand(y.dv, of_k)}, {{"causal", c.causal}}, threads));
  return y;
}

/// Largest difference over the largest expected magnitude.
double distance(const std::vector<float>& got, const std::vector<double>& expected) {
  double largest = 1e-3, difference = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(expected[i])) {
      if (static_cast<double>(got[i]) != expected[i]) return std::numeric_limits<double>::infinity();
      continue;
    }
    if (std::isnan(got[i])) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  return difference / largest;
}

std::string name_of(const CpuSet& set, const Case& c) {
  return text(set.name, ": B ", c.batch, " T ", c.queries, " H ", c.heads, " D ", c.width, " S ", c.keys, " G ", c.groups, " causal ",
              c.causal);
}

// fp32 scores of magnitude up to 10 carry 6e-7; the exponent turns that into a relative error of p, and sums over keys and queries average
// it.
constexpr double kTolerance = 1e-5;

TEST(CpuAttention, EqualsTheTextbookInDoublePrecision) {
  for (const Case& c : kCases) {
    const Inputs inputs(c);
    const Truth truth = textbook(c, inputs);
    for (const CpuSet& set : cpu_sets()) {
      const Results got = run(set, c, inputs, 2);
      EXPECT_LE(distance(got.o, truth.o), kTolerance) << name_of(set, c);
      EXPECT_LE(distance(got.lse, truth.lse), kTolerance) << name_of(set, c);
      EXPECT_LE(distance(got.dq, truth.dq), kTolerance) << name_of(set, c);
      EXPECT_LE(distance(got.dk, truth.dk), kTolerance) << name_of(set, c);
      EXPECT_LE(distance(got.dv, truth.dv), kTolerance) << name_of(set, c);
    }
  }
}

TEST(CpuAttention, HasTheSameBitsForAnyNumberOfThreads) {
  const Case c{2, 130, 4, 24, 150, 2, true};
  const Inputs inputs(c);
  for (const CpuSet& set : cpu_sets()) {
    const Results one = run(set, c, inputs, 1);
    EXPECT_TRUE(one == run(set, c, inputs, 2)) << set.name;
    EXPECT_TRUE(one == run(set, c, inputs, 3)) << set.name;
  }
}

TEST(CpuAttention, GivesZeroAndMinusInfinityWhereAQuerySeesNothing) {
  const Case c{1, 130, 1, 8, 5, 1, true};  // queries 0..124 see nothing, a whole block of them and part of another
  const Inputs inputs(c);
  for (const CpuSet& set : cpu_sets()) {
    const Results got = run(set, c, inputs, 1);
    for (size_t i = 0; i < 125 * 8; ++i) ASSERT_EQ(got.o[i], 0.0F) << set.name << " at " << i;
    for (size_t i = 0; i < 125 * 8; ++i) ASSERT_EQ(got.dq[i], 0.0F) << set.name << " at " << i;
    for (size_t t = 0; t < 125; ++t) ASSERT_EQ(got.lse[t], -std::numeric_limits<float>::infinity()) << set.name << " at " << t;
    ASSERT_TRUE(std::isfinite(got.lse[125])) << set.name;
  }
}

TEST(CpuAttention, WritesZeroGradientsWhenThereIsNoQuery) {
  const Case c{1, 0, 2, 8, 5, 2, true};
  const Inputs inputs(c);
  for (const CpuSet& set : cpu_sets()) {
    const Results got = run(set, c, inputs, 1);
    for (const float g : got.dk) ASSERT_EQ(g, 0.0F) << set.name;
    for (const float g : got.dv) ASSERT_EQ(g, 0.0F) << set.name;
  }
}

TEST(CpuAttention, ShowsANotANumberOfTheInput) {
  const Case c{1, 20, 1, 8, 20, 1, true};
  Inputs inputs(c);
  inputs.q[8 * 10] = std::numeric_limits<float>::quiet_NaN();
  for (const CpuSet& set : cpu_sets()) {
    const Results got = run(set, c, inputs, 1);
    EXPECT_TRUE(std::isnan(got.o[8 * 10])) << set.name;
    EXPECT_TRUE(std::isfinite(got.o[8 * 9])) << set.name;
  }
}

}  // namespace
}  // namespace st
