#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference_run.h"

namespace st {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t batch, queries, keys, heads, groups, width;
};

struct Row {
  std::vector<double> o;
  double lse;
};

/// One row of one head by the definition, keys repeated for each head of a group: no running maximum, a mask instead of a bound.
Row naive_row(const Sizes& n, const Array& q, const Array& k, const Array& v, bool causal, double scale, int64_t b, int64_t h, int64_t t) {
  const int64_t group = h / (n.heads / n.groups);
  const auto q_at = [&](int64_t d) { return q.as<double>()[((b * n.queries + t) * n.heads + h) * n.width + d]; };
  const auto at = [&](const Array& x, int64_t s, int64_t d) { return x.as<double>()[((b * n.keys + s) * n.groups + group) * n.width + d]; };
  Row row{std::vector<double>(static_cast<size_t>(n.width)), 0};
  double sum = 0;
  for (int64_t s = 0; s < n.keys; ++s) {
    double score = 0;
    for (int64_t d = 0; d < n.width; ++d) score += q_at(d) * at(k, s, d);
    score = causal && s > t + n.keys - n.queries ? -kInfinity : score * scale;
    sum += std::exp(score);
    for (int64_t d = 0; d < n.width; ++d) row.o[static_cast<size_t>(d)] += std::exp(score) * at(v, s, d);
  }
  for (double& o : row.o) o = sum == 0 ? 0 : o / sum;
  row.lse = std::log(sum);
  return row;
}

void expect_naive(const Sizes& n, bool causal, double scale = 0) {
  SCOPED_TRACE(text("T ", n.queries, " S ", n.keys, " H ", n.heads, " G ", n.groups, " causal ", causal));
  const Array q = wave({n.batch, n.queries, n.heads, n.width}, 1);
  const Array k = wave({n.batch, n.keys, n.groups, n.width}, 2), v = wave({n.batch, n.keys, n.groups, n.width}, 3);
  const std::vector<Array> out = run(Op::attention, {q, k, v}, {{"causal", causal}, {"scale", scale}});
  const double used = scale == 0 ? 1 / std::sqrt(static_cast<double>(n.width)) : scale;
  for (int64_t b = 0; b < n.batch; ++b) {
    for (int64_t h = 0; h < n.heads; ++h) {
      for (int64_t t = 0; t < n.queries; ++t) {
        const Row want = naive_row(n, q, k, v, causal, used, b, h, t);
        const double lse = out[1].as<double>()[(b * n.heads + h) * n.queries + t];
        if (std::isinf(want.lse))
          EXPECT_EQ(lse, want.lse);
        else
          EXPECT_NEAR(lse, want.lse, 1e-14);
        for (int64_t d = 0; d < n.width; ++d) {
          EXPECT_NEAR(out[0].as<double>()[((b * n.queries + t) * n.heads + h) * n.width + d], want.o[static_cast<size_t>(d)], 1e-14);
        }
      }
    }
  }
}

TEST(ReferenceAttention, EqualsTheNaiveSoftmax) {
  for (const bool causal : {false, true}) expect_naive({2, 5, 5, 3, 3, 4}, causal);
  expect_naive({1, 3, 3, 1, 1, 4}, true, 0.7);
}

TEST(ReferenceAttention, SharesKeysAmongTheHeadsOfAGroup) {
  expect_naive({2, 4, 4, 6, 2, 3}, true);
  expect_naive({2, 4, 4, 4, 1, 3}, false);
}

TEST(ReferenceAttention, AlignsTheCausalMaskWithTheLastKey) {
  expect_naive({2, 2, 6, 2, 1, 4}, true);
  expect_naive({2, 6, 4, 2, 1, 4}, true);  // the first two queries see nothing
}

TEST(ReferenceAttention, GivesZeroToARowThatSeesNothing) {
  const std::vector<Array> out = run(Op::attention, {wave({1, 3, 1, 2}, 1), wave({1, 1, 1, 2}, 2), wave({1, 1, 1, 2}, 3)});
  EXPECT_EQ(out[0].as<double>()[0], 0);
  EXPECT_EQ(out[0].as<double>()[3], 0);
  EXPECT_EQ(out[1].as<double>()[1], -kInfinity);
  EXPECT_NE(out[0].as<double>()[4], 0);  // the last query sees the key
}

TEST(ReferenceAttention, DoesNotOverflowOnLargeScores) {
  Array q = Array::of<double>({1, 1, 1, 1}, {1000});
  const Array k = Array::of<double>({1, 2, 1, 1}, {1000, 999}), v = Array::of<double>({1, 2, 1, 1}, {5, 7});
  const std::vector<Array> out = run(Op::attention, {q, k, v}, {{"scale", 1.0}});
  EXPECT_EQ(out[0].as<double>()[0], 5);
  EXPECT_EQ(out[1].as<double>()[0], 1e6);
}

}  // namespace
}  // namespace st
