// A training on the simulated device of which the host computes an op in the middle: kernels before and after it are recorded apart.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <optional>

#include "device_name.h"
#include "equivalence/token_rows.h"
#include "ir/build.h"
#include "ir/host_op.h"
#include "sanitized.h"
#include "training.h"

namespace st {
namespace {

/// y = x x, with the arithmetic of mul and of its gradient.
HostOp square(std::atomic<int>& calls) {
  return {.name = "square",
          .outputs = 1,
          .shape =
              [](std::span<const HostType> in, std::span<HostType> out) {
                out[0] = in[0];
                return 0;
              },
          .forward =
              [&calls](std::span<const OpView> in, std::span<const OpView> out) {
                const auto* x = static_cast<const float*>(in[0].data);
                auto* y = static_cast<float*>(out[0].data);
                for (int64_t i = 0; i < out[0].bytes / 4; ++i) y[i] = x[i] * x[i];
                ++calls;
                return 0;
              },
          .backward =
              [&calls](std::span<const OpView> in, std::span<const OpView>, std::span<const OpView> d_out, std::span<const OpView> d_in) {
                const auto* x = static_cast<const float*>(in[0].data);
                const auto* dy = static_cast<const float*>(d_out[0].data);
                auto* dx = static_cast<float*>(d_in[0].data);
                for (int64_t i = 0; i < d_in[0].bytes / 4; ++i) {
                  const float part = dy[i] * x[i];
                  dx[i] = part + part;
                }
                ++calls;
                return 0;
              }};
}

/// The training's GPT with squares of its logits in the loss, by the host or by the library.
std::shared_ptr<Model> with_squares(const Training& training, std::atomic<int>* calls) {
  const auto context = training.context();
  Program program = build_gpt(training.options);
  EXPECT_EQ(program.sections[0].graph.nodes.back().op, Op::cross_entropy);
  program.sections[0].graph.nodes.pop_back();
  Builder b(program, 0);
  const Value logits = program.outputs.front().value, targets = b.load(program.slot_named("targets"));
  Value squares;
  if (calls == nullptr) {
    squares = b(Op::mul, {logits, logits});
  } else {
    context->host_ops().add(square(*calls));
    squares = b(Op::host, {logits}, *context->host_ops().attrs_of("square"));
  }
  const auto loss = b.append(Op::cross_entropy, {squares, targets});
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  return std::make_shared<Model>(context, std::move(program), 1);
}

struct Squared {
  std::vector<double> losses;
  std::string state;
  bool operator==(const Squared&) const = default;
};

constexpr int64_t kRowsOfSquares[] = {8, 5, 8};  // the second has a micro-batch of one row

Squared squared_by(const Training& training, std::atomic<int>* calls, bool in_slices = false) {
  const auto trainer = training.trainer_of(with_squares(training, calls), nullptr);
  const TokenRows all(8, training.options.context, training.options.vocabulary);
  Squared made;
  for (const int64_t rows : kRowsOfSquares) {
    std::optional<StepReport> report;
    while (!report) report = trainer->advance(all.first(rows), in_slices ? 0 : std::numeric_limits<double>::infinity());
    made.losses.push_back(report->loss);
  }
  made.state = trainer->state_digest();
  return made;
}

class SimulatedHostOps : public testing::TestWithParam<const char*> {};

// The streams of a process have one order: tests/cuda/CMakeLists.txt runs Late/* and Random/* in processes of their own.
INSTANTIATE_TEST_SUITE_P(Eager, SimulatedHostOps, testing::Values("eager"));
INSTANTIATE_TEST_SUITE_P(Late, SimulatedHostOps, testing::Values("late"));
INSTANTIATE_TEST_SUITE_P(Random, SimulatedHostOps, testing::Values("random"));

TEST_P(SimulatedHostOps, HaveTheBitsOfTheLibrarysOwnOpWithAndWithoutRecordings) {
  Training training{.device = kDevice, .recipe = {.batch = 2}};
  training.options = {.layers = 1, .width = 4, .heads = 1, .context = 3, .vocabulary = 5};
  training.recipe.set("micro_batches", "4");
  training.recipe.set("warmup", "0");
  const Squared wanted = squared_by(training, nullptr);
  EXPECT_NE(wanted.losses.front(), wanted.losses.back());
  std::atomic<int> calls = 0;
  EXPECT_EQ(squared_by(training, &calls), wanted);
  EXPECT_EQ(calls, 2 * (4 + 3 + 4));
  if (!kSanitized) EXPECT_EQ(squared_by(training, &calls, true), wanted);
  const NoRecordings unrecorded;
  EXPECT_EQ(squared_by(training, &calls), wanted);
}

}  // namespace
}  // namespace st
