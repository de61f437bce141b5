#include "ir/counted_loss.h"

#include "ir/verify.h"
#include "refusal.h"

namespace st {
namespace {

/// A graph with batch inputs, a parameter, and losses over them.
struct Rows {
  Program program = [] {
    Program made;
    made.sections.emplace_back();
    return made;
  }();
  Builder b{program, 0};
  Value w = b.parameter("w", {3}, {}), x = b.input("x", DType::f32, {kBatch, 3}), y = b.input("y", DType::f32, {kBatch, 3});
  Value weights = b.input("weights", DType::f32, {kBatch, 3}), labels = b.input("labels", DType::i32, {kBatch});
  Value others = b.input("others", DType::i32, {kBatch});

  Value z = b.mul(x, w);
  Value loss(Op op, std::vector<Value> in) { return b.append(op, std::move(in))[0]; }
  Value mse = loss(Op::mse, {z, y}), weighted = loss(Op::mse, {z, y, weights}), huber = loss(Op::huber, {z, y});
  Value entropy = loss(Op::cross_entropy, {z, labels});
  Value of_rows(Op op, Value v) { return b(op, {v}, {{"axes", Ints{}}}); }
};

TEST(CountedLoss, OfALossOpIsItsOwnSumAndCount) {
  Rows rows;
  for (const Value loss : {rows.mse, rows.weighted, rows.huber, rows.entropy}) {
    const int32_t before = rows.b.graph().size();
    const CountedLoss made = counted_loss(rows.b, loss);
    EXPECT_EQ(made.sum, loss);
    EXPECT_EQ(made.count, (Value{loss.node, 1}));
    EXPECT_EQ(rows.b.graph().size(), before);
  }
}

struct Refused {
  const char* name;
  Value (*loss)(Rows& rows);
  std::vector<std::string_view> words;
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class CountedLossOf : public testing::TestWithParam<Refused> {};

TEST_P(CountedLossOf, WhatDependsOnTheCutIsRefused) {
  Rows rows;
  const Error error = error_of([&] { counted_loss(rows.b, GetParam().loss(rows)); });
  EXPECT_EQ(error.code(), Code::invalid_argument);
  for (const std::string_view word : GetParam().words) EXPECT_TRUE(says(error, word));
}

INSTANTIATE_TEST_SUITE_P(
    Formulas, CountedLossOf,
    testing::Values(
        Refused{"exp", [](Rows& r) { return r.b(Op::exp, {r.mse}); }, {"exp (%", "micro-batches", "st_trainer_forward"}},
        Refused{"clamp",
                [](Rows& r) {
                  return r.b(Op::clamp, {r.b.scale(r.mse, 2)}, {{"high", 1.0}});
                },
                {"clamp (%"}},
        Refused{"relu_in_a_sum", [](Rows& r) { return r.b.add(r.mse, r.b(Op::relu, {r.huber})); }, {"relu (%"}},
        Refused{"product", [](Rows& r) { return r.b.mul(r.mse, r.huber); }, {"mul (%"}},
        Refused{"square", [](Rows& r) { return r.b.mul(r.mse, r.mse); }, {"mul (%"}},
        Refused{"quotient", [](Rows& r) { return r.b.div(r.mse, r.huber); }, {"div (%"}},
        Refused{"larger",
                [](Rows& r) {
                  return r.b(Op::maximum, {r.mse, r.huber});
                },
                {"maximum (%"}},
        Refused{"root_of_a_mean", [](Rows& r) { return r.b(Op::sqrt, {r.of_rows(Op::mean, r.z)}); }, {"sqrt (%"}},
        Refused{"largest", [](Rows& r) { return r.of_rows(Op::max, r.z); }, {"max (%"}},
        Refused{"sum_of_rows", [](Rows& r) { return r.of_rows(Op::sum, r.z); }, {"sum (%", "use mean"}},
        Refused{"function_in_a_mean",
                [](Rows& r) { return r.of_rows(Op::mean, r.b.mul(r.z, r.b.as(r.mse, DType::f32))); },
                {"mean (%", "computed over a whole micro-batch"}},
        Refused{"loss_of_a_loss",
                [](Rows& r) {
                  return r.loss(Op::mse, {r.b.as(r.mse, DType::f32), r.b.as(r.huber, DType::f32)});
                },
                {"mse (%", "computed over a whole micro-batch"}},
        Refused{"divisor_of_parameters", [](Rows& r) { return r.b.div(r.of_rows(Op::sum, r.x), r.of_rows(Op::sum, r.z)); }, {"div (%"}},
        Refused{"function_of_a_fixed_loss",
                [](Rows& r) {
                  return r.b.mul(r.mse, r.b(Op::exp, {r.loss(Op::mse, {r.w, r.w})}));
                },
                {"mul (%"}},
        Refused{"count",
                [](Rows& r) {
                  return Value{r.mse.node, 1};
                },
                {"first result"}},
        Refused{"entropy_and_mse", [](Rows& r) { return r.b.add(r.entropy, r.mse); }, {"cross_entropy (%", "mse (%", "st_trainer_forward"}},
        Refused{"other_targets",
                [](Rows& r) {
                  return r.b.sub(r.entropy, r.loss(Op::cross_entropy, {r.z, r.others}));
                },
                {"same targets and weights"}},
        Refused{"weighted_and_not", [](Rows& r) { return r.b.add(r.weighted, r.mse); }, {"mse (%"}},
        Refused{"entropy_and_a_mean",
                [](Rows& r) { return r.b.add(r.entropy, r.b.as(r.of_rows(Op::mean, r.z), DType::f64)); },
                {"cross_entropy (%", "mean (%"}}),
    [](const auto& its) { return its.param.name; });

TEST(CountedLoss, AnEndlessChainIsWalkedWithoutRecursion) {
  Rows rows;
  Value loss = rows.mse;
  for (int i = 0; i < 20'000; ++i) loss = rows.b(Op::neg, {loss});
  EXPECT_EQ(counted_loss(rows.b, loss).count, (Value{rows.mse.node, 1}));
}

}  // namespace
}  // namespace st
