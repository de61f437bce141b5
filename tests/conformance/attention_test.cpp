#include <cmath>
#include <limits>

#include "conformance.h"

namespace st::conformance {
namespace {

struct Heads {
  int64_t batch, queries, keys, query_heads, key_heads, size;
};
const Heads kHeads[] = {
    {1, 1, 1, 1, 1, 1},     {2, 7, 7, 2, 2, 8}, {1, 5, 5, 4, 2, 4}, {1, 3, 9, 3, 1, 5}, {2, 37, 37, 2, 1, 16},
    {1, 129, 129, 1, 1, 8}, {1, 6, 4, 2, 1, 4}, {0, 3, 3, 2, 2, 4}, {1, 0, 3, 2, 2, 4}, {1, 237, 237, 2, 2, 64},
};

// Several blocks of every instruction set, and a partial one. They take most of the time, so they run with one scale only.
bool is_large(const Heads& heads) { return heads.queries > 200; }

std::vector<Tensor> head_operands(Suite& s, const Heads& h) {
  const Shape keys = {h.batch, h.keys, h.key_heads, h.size};
  return {s.normal({h.batch, h.queries, h.query_heads, h.size}), s.normal(keys), s.normal(keys)};
}

// At, below and above the instruction sets' blocks of 48, 96 and 112 rows, uneven in every dimension, and queries that see nothing.
const Heads kBlocks[] = {
    {2, 5, 5, 2, 2, 3},      {1, 112, 112, 2, 2, 16}, {1, 113, 113, 2, 1, 64}, {2, 250, 250, 4, 2, 32},
    {1, 37, 129, 3, 3, 20},  {1, 129, 37, 2, 1, 33},  {1, 1, 300, 4, 1, 64},   {1, 130, 5, 1, 1, 8},
    {2, 130, 150, 4, 2, 24}, {1, 21, 33, 2, 1, 288},  {1, 9, 11, 2, 2, 300},
};
const Heads kUnmasked[] = {{1, 100, 230, 6, 2, 64}, {1, 300, 300, 1, 1, 128}, {1, 97, 49, 2, 2, 8}};

/// Spread scores, so that the softmax is not flat: scores of magnitude up to 10 have an error of 6e-7, which the exponential turns into a
/// relative error of a weight.
constexpr Tolerance kSpread = {.largest = 84};

std::vector<Tensor> spread_operands(Suite& s, const Heads& h) {
  const Shape keys = {h.batch, h.keys, h.key_heads, h.size};
  return {s.uniform({h.batch, h.queries, h.query_heads, h.size}, -3, 3), s.uniform(keys, -1, 1), s.uniform(keys, -1, 1)};
}

template <class Add>
void each_block(const Add& add) {
  for (const Heads& heads : kBlocks) add(heads, Attrs{{"causal", true}});
  for (const Heads& heads : kUnmasked) add(heads, Attrs{{"causal", false}});
}

// Scores and outputs are sums; a score of 10 magnifies its own rounding in the exponential: some units of the largest element.
const Cases attention_cases(Op::attention, {.largest = 16}, [](Suite& s) {
  for (const bool causal : {true, false})
    for (const double scale : {0.0, 0.3})
      for (const Heads& heads : kHeads)
        if (scale == 0 || !is_large(heads)) s.add(head_operands(s, heads), {{"causal", causal}, {"scale", scale}});
  each_block([&](const Heads& heads, const Attrs& attrs) { s.add_large(spread_operands(s, heads), attrs).tolerance = kSpread; });
});

// Three successive sums over up to 237 rows. In 16 bits dy . o replaces the sum over keys, and o is rounded: units of storage. The
// reference recomputes o and lse from its q and k, so each storage type gets its own.
const Cases attention_backward_cases(Op::attention_backward, {.largest = 64, .stored = 1}, [](Suite& s) {
  const auto reference = make_reference();
  for (const bool causal : {true, false})
    for (const double scale : {0.0, 0.3})
      for (const Heads& heads : kHeads) {
        if (scale != 0 && is_large(heads)) continue;
        const Attrs attrs = {{"causal", causal}, {"scale", scale}};
        const OpCase forward{.op = Op::attention, .name = "forward", .in = head_operands(s, heads), .attrs = attrs};
        const Tensor seed = s.normal(forward.in[0].shape());
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
          const OpCase stored = in_dtype(forward, dtype);
          const auto out = run(*reference, stored).out;
          OpCase& c = s.add({stored.in[0], stored.in[1], stored.in[2], out[0], out[1], seed.to(dtype)}, attrs);
          c.statistics = {4};
          c.dtypes = {dtype};
        }
      }
  each_block([&](const Heads& heads, const Attrs& attrs) {
    std::vector<Tensor> in = spread_operands(s, heads);
    const auto out = run(*reference, {.op = Op::attention, .name = "forward", .in = in, .attrs = attrs}).out;
    in.insert(in.end(), {out[0], out[1], s.uniform(in[0].shape(), -1, 1)});
    s.add_large(std::move(in), attrs).tolerance = kSpread;
  });
});

// Angles are computed in fp64 or nearly so: two products and a sum, which may cancel.
const Cases rope_cases(Op::rope, {.each = 2, .largest = 2}, [](Suite& s) {
  const std::vector<DType> dtypes = {DType::f32, DType::bf16, DType::f16};  // in f64 the rounding of the angle is visible
  const Shape inputs[] = {{1, 1, 1, 2}, {2, 7, 3, 8}, {1, 37, 1, 6}, {0, 3, 2, 4}, {1, 0, 2, 4}, {2, 129, 4, 64}, {1, 3, 2, 0}};
  for (const Shape& x : inputs)
    for (const bool inverse : {false, true}) {
      s.add({s.normal(x)}, {{"inverse", inverse}}).dtypes = dtypes;
      s.add({s.normal(x)}, {{"inverse", inverse}, {"offset", int64_t{1000}}, {"base", 500.0}}).dtypes = dtypes;
    }
  s.add_large({s.uniform({3, 37, 5, 26}, -1, 1)}, {{"offset", int64_t{3}}});
});

/// Forward and backward of one head.
struct OneHead {
  Tensor o, lse, dq, dk, dv;
};

OneHead run_one_head(Backend& backend, std::vector<Tensor> in, const Attrs& attrs = {}) {
  const auto out = run(backend, {.op = Op::attention, .name = "forward", .in = in, .attrs = attrs}).out;
  in.insert(in.end(), {out[0], out[1], in[0]});
  const auto gradients = run(backend, {.op = Op::attention_backward, .name = "backward", .in = in, .attrs = attrs}).out;
  return {out[0], out[1], gradients[0], gradients[1], gradients[2]};
}

TEST(Attention, GivesZeroAndMinusInfinityWhereAQuerySeesNothing) {
  std::vector<OpCase> none;
  Suite s(Op::attention, {}, none);
  const auto in = head_operands(s, {1, 130, 5, 1, 1, 8});  // queries 0..124 see nothing: a whole block and part of another
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const OneHead got = run_one_head(*candidate.make(), in);
    for (int64_t i = 0; i < 125 * 8; ++i) ASSERT_TRUE(got.o.at(i) == 0 && got.dq.at(i) == 0) << candidate.name << " at " << i;
    for (int64_t t = 0; t < 125; ++t) ASSERT_EQ(got.lse.at(t), -std::numeric_limits<double>::infinity()) << candidate.name << " at " << t;
    EXPECT_TRUE(std::isfinite(got.lse.at(125))) << candidate.name;
    EXPECT_NE(got.o.at(125 * 8), 0) << candidate.name;
  }
}

/// Keys masked by -inf in a column where queries have 1: of 20 queries, the first 3 see no other key.
TEST(Attention, GivesZeroWhereAllScoresAreMinusInfinity) {
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  constexpr int64_t kWidth = 8, kQueries = 20, kPadding = 3;
  std::vector<OpCase> none;
  Suite s(Op::attention, {}, none);
  auto in = head_operands(s, {1, kQueries, kQueries, 1, 1, kWidth});
  for (int64_t t = 0; t < kQueries; ++t) {
    in[0].set(t * kWidth, 1);
    in[1].set(t * kWidth, t < kPadding ? kMasked : 0);
  }
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const OneHead got = run_one_head(*candidate.make(), in);
    for (int64_t i = 0; i < kQueries * kWidth; ++i) {
      const bool sees_none = i < kPadding * kWidth;
      ASSERT_EQ(got.o.at(i) == 0, sees_none) << candidate.name << " at " << i;
      for (const Tensor* gradient : {&got.dk, &got.dv})
        ASSERT_TRUE(std::isfinite(gradient->at(i)) && (gradient->at(i) == 0) == sees_none) << candidate.name << " at " << i;
      if (i % kWidth == 0) continue;  // dq is 0 times -inf there
      ASSERT_TRUE(std::isfinite(got.dq.at(i)) && (got.dq.at(i) == 0 || i >= kPadding * kWidth)) << candidate.name << " at " << i;
    }
    EXPECT_EQ(got.lse.at(kPadding - 1), kMasked) << candidate.name;
    EXPECT_TRUE(std::isfinite(got.lse.at(kPadding))) << candidate.name;
  }
}

TEST(Attention, ShowsANotANumberInItsRowAlone) {
  std::vector<OpCase> none;
  Suite s(Op::attention, {}, none);
  auto in = head_operands(s, {1, 20, 20, 1, 1, 8});
  in[0].set(8 * 10, std::numeric_limits<double>::quiet_NaN());
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const Tensor o = run_one_head(*candidate.make(), in).o;
    EXPECT_TRUE(std::isnan(o.at(8 * 10))) << candidate.name;
    EXPECT_TRUE(std::isfinite(o.at(8 * 9))) << candidate.name;
  }
}

TEST(Attention, DoesNotOverflowOnLargeScores) {
  const std::vector<Tensor> in = {Tensor::of({1, 1, 1, 1}, {1000}), Tensor::of({1, 2, 1, 1}, {1000, 999}),
                                  Tensor::of({1, 2, 1, 1}, {5, 7})};
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const OneHead got = run_one_head(*candidate.make(), in, {{"scale", 1.0}});
    EXPECT_EQ(got.o.at(0), 5) << candidate.name;
    EXPECT_EQ(got.lse.at(0), 1e6) << candidate.name;
  }
}

// --- the reference against the definition

struct AttentionRow {
  std::vector<double> o;
  double lse;
};

/// One row of one head by definition, keys repeated for each head of a group: no running maximum, a mask instead of a bound.
AttentionRow naive_row(const Heads& n, const Tensor& q, const Tensor& k, const Tensor& v, bool causal, double scale, int64_t b, int64_t h,
                       int64_t t) {
  const int64_t group = h / (n.query_heads / n.key_heads);
  const auto q_at = [&](int64_t d) { return q.at(((b * n.queries + t) * n.query_heads + h) * n.size + d); };
  const auto at = [&](const Tensor& x, int64_t s, int64_t d) { return x.at(((b * n.keys + s) * n.key_heads + group) * n.size + d); };
  AttentionRow row{std::vector<double>(static_cast<size_t>(n.size)), 0};
  double sum = 0;
  for (int64_t s = 0; s < n.keys; ++s) {
    double score = 0;
    for (int64_t d = 0; d < n.size; ++d) score += q_at(d) * at(k, s, d);
    score = causal && s > t + n.keys - n.queries ? -std::numeric_limits<double>::infinity() : score * scale;
    sum += std::exp(score);
    for (int64_t d = 0; d < n.size; ++d) row.o[static_cast<size_t>(d)] += std::exp(score) * at(v, s, d);
  }
  for (double& o : row.o) o = sum == 0 ? 0 : o / sum;
  row.lse = std::log(sum);
  return row;
}

void expect_naive(const Heads& n, bool causal, double scale = 0) {
  SCOPED_TRACE(text("T ", n.queries, " S ", n.keys, " H ", n.query_heads, " G ", n.key_heads, " causal ", causal));
  std::vector<OpCase> none;
  Suite s(Op::attention, {}, none);
  const auto uniform = [&](int64_t rows, int64_t heads) { return s.uniform({n.batch, rows, heads, n.size}, -1, 1).to(DType::f64); };
  const Tensor q = uniform(n.queries, n.query_heads), k = uniform(n.keys, n.key_heads), v = uniform(n.keys, n.key_heads);
  const auto out = run_on_reference(Op::attention, {q, k, v}, {{"causal", causal}, {"scale", scale}}).out;
  const double used = scale == 0 ? 1 / std::sqrt(static_cast<double>(n.size)) : scale;
  for (int64_t b = 0; b < n.batch; ++b) {
    for (int64_t h = 0; h < n.query_heads; ++h) {
      for (int64_t t = 0; t < n.queries; ++t) {
        const AttentionRow want = naive_row(n, q, k, v, causal, used, b, h, t);
        const double lse = out[1].at((b * n.query_heads + h) * n.queries + t);
        if (std::isinf(want.lse))
          EXPECT_EQ(lse, want.lse);
        else
          EXPECT_NEAR(lse, want.lse, 1e-14);
        for (int64_t d = 0; d < n.size; ++d) {
          EXPECT_NEAR(out[0].at(((b * n.queries + t) * n.query_heads + h) * n.size + d), want.o[static_cast<size_t>(d)], 1e-14);
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

}  // namespace
}  // namespace st::conformance
