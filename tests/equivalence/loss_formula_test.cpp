// A loss is the mean of its formula over the rows of a step, for every cut of the step into micro-batches and on ranks (traps.md, order of
// sums 11). The expected formula and its gradient, by central differences, are computed here in fp64.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "data/dataset.h"
#include "ir/counted_loss.h"
#include "train/trainer.h"

namespace st {
namespace {

constexpr int64_t kRows = 20, kInputs = 3, kOutputs = 2, kIgnored = -100;

float some(size_t i, double of) { return static_cast<float>(std::sin(of * static_cast<double>(i) + of)); }

/// The model's data: x w = z, targets y, classes of z's rows (some ignored), weights and shares of z's elements.
struct Numbers {
  std::vector<float> x, y, share, weight, w;
  std::vector<int32_t> label;

  Numbers() {
    for (size_t i = 0; i < kRows * kInputs; ++i) x.push_back(2 * some(i, 0.7));
    for (size_t i = 0; i < kRows * kOutputs; ++i) {
      y.push_back(some(i, 1.3));
      share.push_back(0.5F + 0.5F * some(i, 2.1));
      weight.push_back(1 + some(i, 0.4));
    }
    for (size_t r = 0; r < kRows; ++r) label.push_back(r % 3 == 0 || r == 7 ? kIgnored : static_cast<int32_t>(r % 2));
    for (size_t i = 0; i < kInputs * kOutputs; ++i) w.push_back(some(i, 0.9));
  }

  std::vector<HostView> views() const {
    return {plain_view("x", DType::f32, {kRows, kInputs}, x.data()), plain_view("y", DType::f32, {kRows, kOutputs}, y.data()),
            plain_view("share", DType::f32, {kRows, kOutputs}, share.data()),
            plain_view("weight", DType::f32, {kRows, kOutputs}, weight.data()), plain_view("label", DType::i32, {kRows}, label.data())};
  }

  std::shared_ptr<const Dataset> rows() const {
    return std::make_shared<HostArrays>(kRows, std::vector<HostArray>{{{"x", DType::f32, {kInputs}}, x.data()},
                                                                      {{"y", DType::f32, {kOutputs}}, y.data()},
                                                                      {{"share", DType::f32, {kOutputs}}, share.data()},
                                                                      {{"weight", DType::f32, {kOutputs}}, weight.data()},
                                                                      {{"label", DType::i32, {}}, label.data()}});
  }
};

const Numbers& numbers() {
  static const Numbers made;
  return made;
}

/// The graph's side of a formula.
struct Net {
  Program program;
  Builder b;
  Value w, z, y, share, weight, label;

  Net() : program(one_section()), b(program, 0) {
    w = b.parameter("w", {kInputs, kOutputs}, {.kind = Init::values, .values = numbers().w});
    z = b.matmul(b.input("x", DType::f32, {kBatch, kInputs}), w);
    y = b.input("y", DType::f32, {kBatch, kOutputs});
    share = b.input("share", DType::f32, {kBatch, kOutputs});
    weight = b.input("weight", DType::f32, {kBatch, kOutputs});
    label = b.input("label", DType::i32, {kBatch});
  }
  static Program one_section() {
    Program made;
    made.sections.emplace_back();
    return made;
  }
  Value loss(Op op, std::vector<Value> in, const Attrs& attrs = {}) { return b.append(op, std::move(in), attrs)[0]; }
  Value mse() { return loss(Op::mse, {z, y}); }
  Value huber() { return loss(Op::huber, {z, y}, {{"delta", 0.8}}); }
  Value bce() { return loss(Op::bce_with_logits, {z, share}); }
  Value entropy(double smoothing = 0) { return loss(Op::cross_entropy, {z, label}, {{"label_smoothing", smoothing}}); }
  Value of_all(Op op, Value v) { return b.as(b(op, {v}, {{"axes", Ints{}}}), DType::f64); }
  Value penalty() { return of_all(Op::sum, b.mul(w, w)); }
};

/// The fp64 side of a formula, with weights that may differ from the model's.
struct In64 {
  std::vector<double> w, z;

  explicit In64(std::vector<double> weights) : w(std::move(weights)), z(kRows * kOutputs) {
    for (size_t r = 0; r < kRows; ++r)
      for (size_t i = 0; i < kInputs; ++i)
        for (size_t o = 0; o < kOutputs; ++o)
          z[r * kOutputs + o] += static_cast<double>(numbers().x[r * kInputs + i]) * w[i * kOutputs + o];
  }
  template <class F>
  double mean(const F& of, const std::vector<float>& weights = std::vector<float>(kRows * kOutputs, 1)) const {
    double sum = 0, count = 0;
    for (size_t i = 0; i < z.size(); ++i) {
      sum += static_cast<double>(weights[i]) * of(i);
      count += static_cast<double>(weights[i]);
    }
    return sum / count;
  }
  double square(size_t i) const { return (z[i] - static_cast<double>(numbers().y[i])) * (z[i] - static_cast<double>(numbers().y[i])); }
  double bend(size_t i) const {
    const double d = std::sqrt(square(i));
    return d <= 0.8 ? d * d / 2 : 0.8 * (d - 0.4);
  }
  double mse() const {
    return mean([&](size_t i) { return square(i); });
  }
  double huber() const {
    return mean([&](size_t i) { return bend(i); });
  }
  double bce() const {
    return mean([&](size_t i) { return std::log1p(std::exp(z[i])) - z[i] * static_cast<double>(numbers().share[i]); });
  }
  double entropy(double smoothing = 0) const {
    double sum = 0, count = 0;
    for (size_t r = 0; r < kRows; ++r) {
      if (numbers().label[r] == kIgnored) continue;
      const double *row = &z[r * kOutputs], lse = std::log(std::exp(row[0]) + std::exp(row[1]));
      sum += lse - (1 - smoothing) * row[numbers().label[r]] - smoothing * (row[0] + row[1]) / 2;
      ++count;
    }
    return sum / count;
  }
  double penalty() const {
    double sum = 0;
    for (const double v : w) sum += v * v;
    return sum;
  }
};

struct Formula {
  const char* name;
  Value (*graph)(Net& net);
  double (*numbers)(const In64& of);

  double value() const { return numbers(In64({st::numbers().w.begin(), st::numbers().w.end()})); }
  std::vector<double> gradient() const {
    constexpr double kStep = 1e-5;
    std::vector<double> w(st::numbers().w.begin(), st::numbers().w.end()), made;
    for (double& at : w) {
      const double kept = at;
      at = kept + kStep;
      const double above = numbers(In64(w));
      at = kept - kStep;
      made.push_back((above - numbers(In64(w))) / (2 * kStep));
      at = kept;
    }
    return made;
  }
};

void PrintTo(const Formula& formula, std::ostream* out) { *out << formula.name; }

class LossFormula : public testing::TestWithParam<Formula> {
 protected:
  static std::unique_ptr<Trainer> trainer(int64_t batch, int64_t micro_batches, const char* lr = "0", int64_t ranks = 1, int64_t zero = 0) {
    Net net;
    const CountedLoss loss = counted_loss(net.b, GetParam().graph(net));
    net.program.loss_sum = loss.sum;
    net.program.loss_count = loss.count;
    net.program.outputs = {{"z", net.z}, {"metric.loss", loss.sum, loss.count}};
    const auto context = std::make_shared<Context>(ContextOptions{.device = "cpu", .threads = 1, .log = {}, .parallel = {}, .memory = {}});
    Recipe recipe;
    recipe.batch = batch;
    recipe.micro_batches = micro_batches;
    recipe.ranks = ranks;
    recipe.zero = zero;
    recipe.threads = 1;
    for (const auto& [key, value] : {std::pair{"lr", lr}, {"warmup", "0"}, {"clip", "0"}}) recipe.set(key, value);
    return std::make_unique<Trainer>(std::make_shared<Model>(context, net.program, 1), recipe, nullptr);
  }

  static void expect_formula(const Trainer& trainer, double loss, const std::string& cut) {
    std::vector<float> made(kInputs * kOutputs);
    trainer.gradient("w", plain_view("w", DType::f32, {kInputs, kOutputs}, made.data()));
    const std::vector<double> expected = GetParam().gradient();
    double difference = 0, size = 0;
    for (size_t i = 0; i < made.size(); ++i) {
      difference = std::hypot(difference, static_cast<double>(made[i]) - expected[i]);
      size = std::hypot(size, expected[i]);
    }
    EXPECT_LE(difference, 1e-6 * size) << cut;
    EXPECT_NEAR(loss, GetParam().value(), 1e-6 * std::abs(GetParam().value())) << cut;
  }
};

TEST_P(LossFormula, HasItsGradientForEveryCut) {
  for (const auto& [batch, micro_batches] : {std::pair<int64_t, int64_t>{20, 1}, {5, 4}, {1, 20}, {8, 3}, {16, 2}}) {
    const auto cut = trainer(batch, micro_batches);
    const double loss = cut->step(numbers().views()).loss;
    expect_formula(*cut, loss, text(batch, " x ", micro_batches));
  }
}

TEST_P(LossFormula, HasTheBitsOfOneRankOnSeveral) {
  for (const auto& [batch, micro_batches] : {std::pair<int64_t, int64_t>{5, 4}, {8, 3}}) {
    const auto outcome = [&, batch = batch, micro_batches = micro_batches](int64_t ranks, int64_t zero) {
      const auto made = trainer(batch, micro_batches, "0.1", ranks, zero);
      const double first = made->step(numbers().views()).loss, second = made->step(numbers().views()).loss;
      return text(std::bit_cast<uint64_t>(first), " ", std::bit_cast<uint64_t>(second), " ", made->state_digest());
    };
    const std::string alone = outcome(1, 0);
    for (const int64_t ranks : {2, 3})
      for (const int64_t zero : {0, 1, 2, 3}) EXPECT_EQ(outcome(ranks, zero), alone) << batch << ": " << ranks << " ranks, zero " << zero;
  }
}

TEST_P(LossFormula, IsWhatEvaluationAndAMetricSay) {
  const Evaluation evaluation = trainer(8, 1)->evaluate(numbers().rows());
  EXPECT_NEAR(evaluation.loss, GetParam().value(), 1e-6 * std::abs(GetParam().value()));
  EXPECT_EQ(evaluation.metrics[0].mean, evaluation.loss);
}

TEST_P(LossFormula, IsThatOfPairsOfForwardAndBackward) {
  const auto pairs = trainer(5, 4);
  for (int64_t first = 0; first < kRows; first += 5) {
    std::vector<HostView> rows = numbers().views();
    for (HostView& view : rows) {
      view.shape[0] = 5;
      view.data = static_cast<std::byte*>(view.data) + first * view.strides[0] * bytes_of(view.dtype);
    }
    pairs->forward(rows);
    pairs->backward_own_loss();
  }
  expect_formula(*pairs, pairs->apply().loss, "four pairs");
}

INSTANTIATE_TEST_SUITE_P(
    Formulas, LossFormula,
    testing::Values(
        Formula{"scaled_mse", [](Net& n) { return n.b.scale(n.mse(), 2.5); }, [](const In64& n) { return 2.5 * n.mse(); }},
        Formula{"negated_huber", [](Net& n) { return n.b(Op::neg, {n.huber()}); }, [](const In64& n) { return -n.huber(); }},
        Formula{"shifted_bce",
                [](Net& n) {
                  return n.b(Op::affine, {n.bce()}, {{"scale", 0.5}, {"shift", 3.0}});
                },
                [](const In64& n) { return 0.5 * n.bce() + 3; }},
        Formula{"halved_entropy", [](Net& n) { return n.b.div(n.entropy(), n.b.fill({}, 2, DType::f64)); },
                [](const In64& n) { return n.entropy() / 2; }},
        Formula{"one_count", [](Net& n) { return n.b.sub(n.b.add(n.mse(), n.b.scale(n.huber(), 0.25)), n.b.scale(n.bce(), 0.1)); },
                [](const In64& n) { return n.mse() + 0.25 * n.huber() - 0.1 * n.bce(); }},
        Formula{"counts_in_a_ratio",  // 40 elements and 20
                [](Net& n) {
                  const auto column = [&](Value v) { return n.b(Op::slice, {v}, {{"axis", 1}, {"end", 1}}); };
                  return n.b.add(n.b.scale(n.mse(), 0.5), n.b.scale(n.loss(Op::mse, {column(n.z), column(n.y)}), 2));
                },
                [](const In64& n) { return 0.5 * n.mse() + 4 * n.mean([&](size_t i) { return i % 2 == 0 ? n.square(i) : 0; }); }},
        Formula{"entropies_of_one_target", [](Net& n) { return n.b.sub(n.entropy(), n.b.scale(n.entropy(0.2), 0.3)); },
                [](const In64& n) { return n.entropy() - 0.3 * n.entropy(0.2); }},
        Formula{"losses_of_one_weight",
                [](Net& n) {
                  return n.b.add(n.loss(Op::mse, {n.z, n.y, n.weight}), n.loss(Op::huber, {n.z, n.y, n.weight}, {{"delta", 0.8}}));
                },
                [](const In64& n) { return n.mean([&](size_t i) { return n.square(i) + n.bend(i); }, numbers().weight); }},
        Formula{"weight_decay", [](Net& n) { return n.b.add(n.entropy(), n.b.scale(n.penalty(), 0.1)); },
                [](const In64& n) { return n.entropy() + 0.1 * n.penalty(); }},
        Formula{"loss_of_parameters",
                [](Net& n) {
                  return n.b.add(n.entropy(), n.loss(Op::mse, {n.w, n.b.fill({kInputs, kOutputs}, 0.5)}));
                },
                [](const In64& n) {
                  double sum = 0;
                  for (const double w : n.w) sum += (w - 0.5) * (w - 0.5);
                  return n.entropy() + sum / (kInputs * kOutputs);
                }},
        Formula{"learned_factor",
                [](Net& n) { return n.b.add(n.b.mul(n.b(Op::exp, {n.b(Op::neg, {n.penalty()})}), n.mse()), n.penalty()); },
                [](const In64& n) { return std::exp(-n.penalty()) * n.mse() + n.penalty(); }},
        Formula{"parameters_alone", [](Net& n) { return n.penalty(); }, [](const In64& n) { return n.penalty(); }},
        Formula{"own_mean", [](Net& n) { return n.of_all(Op::mean, n.b(Op::tanh, {n.z})); },
                [](const In64& n) { return n.mean([&](size_t i) { return std::tanh(n.z[i]); }); }},
        Formula{"own_mean_and_a_loss", [](Net& n) { return n.b.sub(n.of_all(Op::mean, n.b(Op::tanh, {n.z})), n.b.scale(n.mse(), 3)); },
                [](const In64& n) { return n.mean([&](size_t i) { return std::tanh(n.z[i]); }) - 3 * n.mse(); }},
        Formula{"own_quotient", [](Net& n) { return n.b.div(n.of_all(Op::sum, n.b.mul(n.weight, n.z)), n.of_all(Op::sum, n.weight)); },
                [](const In64& n) { return n.mean([&](size_t i) { return n.z[i]; }, numbers().weight); }},
        Formula{"sum_over_count",
                [](Net& n) {
                  const Value sum = n.entropy();
                  return n.b.div(sum, {sum.node, 1});
                },
                [](const In64& n) { return n.entropy(); }}),
    [](const auto& its) { return its.param.name; });

}  // namespace
}  // namespace st
