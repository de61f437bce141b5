// Stand-alone accumulation in a host's arrays against the trainer's own over its micro-batches: the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backend/kernel_side.h"
#include "base/float16.h"
#include "base/float_mode.h"
#include "parts/accumulator.h"
#include "training.h"

namespace st {
namespace {

/// A step has nominally 8 x 8 tokens, a power of two; ignored targets make it ragged.
const GptOptions kGpt = {.layers = 1, .width = 20, .heads = 2, .context = 8, .vocabulary = 19};

std::unique_ptr<Trainer> trainer_of(const std::string& device, int64_t batch, int64_t micro_batches) {
  Recipe recipe{.batch = batch, .accumulate = micro_batches};
  recipe.merge(R"({"lr":0})");  // so that all steps use the same weights
  return Training{.device = device, .threads = 2, .options = kGpt, .recipe = recipe, .ignored = true}.trainer();
}

/// The sums after backward of every parameter used once; the uses of a tied one have separate sums until the boundary.
std::vector<Operand> gradients_of(const Trainer& trainer) {
  std::vector<Operand> all;
  const Program& program = trainer.plan().program;
  for (const SlotId parameter : trainer.model().parameters()) {
    const std::string& name = trainer.model().slot(parameter).name;
    if (name.find("token_embedding") == std::string::npos) all.push_back(trainer.executor().slot(program.slot_named("gradient." + name)));
  }
  return all;
}

double count_of(const Trainer& trainer) { return *as<double>(trainer.executor().slot(trainer.plan().program.slot_named("loss_count"))); }

TEST(AccumulatorBits, AreThoseOfTheTrainersAccumulate) {
  const FloatMode mode;
  for (const std::string device : {"cpu", "reference"}) {
    const auto whole = trainer_of(device, 2, 4), single = trainer_of(device, 2, 1);
    whole->step();
    std::vector<std::vector<float>> host;
    std::vector<GradientArray> arrays;
    for (const Operand& gradient : gradients_of(*single)) host.emplace_back(static_cast<size_t>(gradient.elements()));
    for (auto& values : host) arrays.push_back({.dtype = DType::f32, .shape = {std::ssize(values)}, .strides = {1}, .data = values.data()});
    Accumulator accumulator(4, arrays, std::make_unique<Workers>(2), std::make_shared<MemorySource>());
    double tokens = 0, least = 16, most = 0;
    for (int k = 0; k < 4; ++k) {
      single->step();
      const auto piece = gradients_of(*single);
      for (size_t i = 0; i < host.size(); ++i) std::memcpy(host[i].data(), as<float>(piece[i]), host[i].size() * sizeof(float));
      tokens += count_of(*single);
      least = std::min(least, count_of(*single));
      most = std::max(most, count_of(*single));
      // 2^-2 each: both trainers seed backward with a power of two over their tokens, and the whole step's seed is 4 times smaller.
      accumulator.add(1);
    }
    EXPECT_EQ(tokens, count_of(*whole)) << "the same micro-batches";
    EXPECT_LT(least, most) << "ragged";
    ASSERT_TRUE(accumulator.should_step());
    const auto wanted = gradients_of(*whole);
    ASSERT_EQ(wanted.size(), host.size());
    size_t elements = 0;
    for (size_t i = 0; i < host.size(); ++i) {
      ASSERT_EQ(static_cast<size_t>(wanted[i].elements()), host[i].size());
      EXPECT_EQ(std::memcmp(host[i].data(), as<float>(wanted[i]), host[i].size() * sizeof(float)), 0) << device << ", gradient " << i;
      elements += host[i].size();
    }
    EXPECT_GT(elements, 4000U);
  }
}

template <class T>
struct Way {
  DType host, sum;
  T (*narrow)(double);
  double (*widen)(T);
};

/// The trainer's accumulate op applied to one micro-batch after the other, then the factor.
template <class T, class Sum>
void expect_the_ops_bits(Backend& backend, const Way<T>& way) {
  constexpr int64_t kElements = 70001, kPieces = 5;
  const double weights[kPieces] = {24, 24, 7, 0, 24};  // one ragged and one empty micro-batch
  const Shape shape = {kElements};
  Workers workers(2);
  std::vector<T> host(kElements), piece(kElements);
  std::vector<Sum> wide(kElements), sum(kElements);
  const GradientArray array = {.dtype = way.host, .shape = shape, .strides = {1}, .data = host.data()};
  Accumulator accumulator(kPieces, std::vector{array}, std::make_unique<Workers>(3), std::make_shared<MemorySource>());
  for (int64_t k = 0; k < kPieces; ++k) {
    for (size_t i = 0; i < piece.size(); ++i)  // magnitudes of 1e-9 to 1e3
      piece[i] =
          way.narrow(std::sin(static_cast<double>(i) * 0.7 + static_cast<double>(k)) * std::pow(10.0, static_cast<double>(i % 13) - 9));
    host = piece;
    accumulator.add(weights[k]);
    if (k == 0)
      for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<Sum>(way.widen(piece[i]));
    if (k == 0 || weights[k] == 0) continue;
    const Operand value = {address_of(piece.data()), way.host, shape}, slot = {address_of(sum.data()), way.sum, shape};
    const Attrs attrs;
    backend.kernels()[static_cast<size_t>(Op::accumulate)].run({.in = std::span(&value, 1),
                                                                .out = {},
                                                                .reads = std::span(&slot, 1),
                                                                .writes = std::span(&slot, 1),
                                                                .attrs = &attrs,
                                                                .workspace = {},
                                                                .workers = &workers});
  }
  ASSERT_TRUE(accumulator.should_step());
  const auto factor = static_cast<Sum>(1 / 79.0);
  for (size_t i = 0; i < sum.size(); ++i) {
    ASSERT_EQ(host[i], way.narrow(static_cast<double>(sum[i] * factor))) << text(way.host) << " element " << i;
  }
}

TEST(AccumulatorBits, AreThoseOfTheOpInEveryType) {
  const FloatMode mode;
  const auto backend = make_cpu_backend();
  expect_the_ops_bits<float, float>(
      *backend, {DType::f32, DType::f32, [](double v) { return static_cast<float>(v); }, [](float v) { return static_cast<double>(v); }});
  expect_the_ops_bits<double, double>(*backend, {DType::f64, DType::f64, [](double v) { return v; }, [](double v) { return v; }});
  expect_the_ops_bits<uint16_t, float>(*backend, {DType::bf16, DType::f32, [](double v) { return bf16_of(static_cast<float>(v)); },
                                                  [](uint16_t v) { return static_cast<double>(f32_of_bf16(v)); }});
  expect_the_ops_bits<uint16_t, float>(*backend, {DType::f16, DType::f32, [](double v) { return f16_of(static_cast<float>(v)); },
                                                  [](uint16_t v) { return static_cast<double>(f32_of_f16(v)); }});
}

TEST(AccumulatorBits, AreTheSameForAnyThreads) {
  const FloatMode mode;
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 4}) {
    std::vector<float> values(300 * 301);
    const GradientArray array = {.dtype = DType::f32, .shape = {std::ssize(values)}, .strides = {1}, .data = values.data()};
    Accumulator accumulator(3, std::vector{array}, std::make_unique<Workers>(threads), std::make_shared<MemorySource>());
    for (int k = 0; k < 3; ++k) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 23 + static_cast<size_t>(k)) / 3;
      accumulator.add(k + 1);
    }
    if (threads == 1) first = values;
    EXPECT_EQ(values, first) << threads << " threads";
  }
}

}  // namespace
}  // namespace st
