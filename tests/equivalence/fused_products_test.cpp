// fuse: ops after a product join it without changing a bit. Tests whole training runs with and without the pass, and every kind of chain in
// every element type.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "backend/kernel_side.h"
#include "base/float16.h"
#include "cpu_classes.h"
#include "ir/build.h"
#include "models/mlp.h"
#include "passes/autodiff.h"
#include "passes/fuse.h"
#include "plan/memory_plan.h"
#include "recipe/kernel_needs_of.h"
#include "token_rows.h"
#include "training.h"

namespace st {
namespace {

int64_t count_of(const Program& program, Op op) {
  int64_t count = 0;
  for (const Section& section : program.sections) count += std::ranges::count(section.graph.nodes, op, &Node::op);
  return count;
}

/// Digest after three steps, and the number of fused products in the plan.
struct TrainedFused {
  std::string digest;
  int64_t fused = 0;
};

TrainedFused trained(const Program& program, const std::vector<HostView>& batch, int64_t micro_batches,
                     const std::vector<std::string>& skip) {
  const auto context = std::make_shared<Context>(ContextOptions{.device = "cpu", .threads = 2, .log = {}, .parallel = {}, .memory = {}});
  Recipe recipe;
  recipe.batch = batch[0].shape[0] / micro_batches;
  recipe.accumulate = micro_batches;
  Trainer trainer(std::make_shared<Model>(context, program, 1), recipe, nullptr, {.skip = skip, .print = {}});
  for (int step = 0; step < 3; ++step) trainer.step(batch);
  return {trainer.state_digest(), count_of(trainer.plan().program, Op::fused_linear)};
}

// Without fuse the bias is a separate add, too. In fp32 that rounds the same: the product's sum is an fp32 number either way.
void expect_equal_without_fuse(const Program& program, const std::vector<HostView>& batch, const char* what) {
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    for (const int64_t micro_batches : {1, 2}) {
      const TrainedFused apart = trained(program, batch, micro_batches, {"fuse", "pack_weights"});
      const TrainedFused together = trained(program, batch, micro_batches, {"pack_weights"});
      EXPECT_EQ(apart.fused, 0);
      EXPECT_GT(together.fused, 0);
      EXPECT_EQ(together.digest, apart.digest) << what << " on " << name << ", " << micro_batches << " micro-batches";
    }
  }
}

TEST(FusedProducts, LeaveEveryBitOfAGpt) {
  const GptOptions options = {.layers = 2, .width = 39, .heads = 3, .context = 13, .vocabulary = 61};
  expect_equal_without_fuse(build_gpt(options), TokenRows(8, options.context, options.vocabulary).first(8), "gpt");
}

TEST(FusedProducts, LeaveEveryBitOfAnMlp) {
  std::vector<float> x(74 * 19), y(74 * 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[5 * i];
  for (const char* activation : {"relu", "gelu", "silu"})
    expect_equal_without_fuse(build_mlp({.inputs = 19, .hidden = {45, 33}, .outputs = 3, .activation = activation, .loss = "mse"}),
                              {plain_view("x", DType::f32, {74, 19}, x.data()), plain_view("y", DType::f32, {74, 3}, y.data())},
                              activation);
}

// --- every chain in every element type, also with a 16-bit rounding between the stages

constexpr int64_t kRows = 7, kTime = 5, kWidth = 18;

/// For each activation x + linear(activation(linear(x))), with rows reshaped into samples for the activation, as layers do.
Program residual_stream(DType dtype) {
  Program program;
  program.sections.push_back({{}, Phase::forward, 0, 0});
  Builder b(program, 0);
  const Shape samples{kBatch, kTime, kWidth}, rows{kTime * kBatch, kWidth}, wide_samples{kBatch, kTime, 3 * kWidth},
      wide_rows{kTime * kBatch, 3 * kWidth};
  const auto parameter = [&](const std::string& name, const Shape& shape) { return b.parameter(name, shape, {}, dtype); };
  Value x = b.input("x", dtype, samples);
  const std::pair<Op, Attrs> activations[] = {{Op::gelu, {{"approximate", std::string("tanh")}}},
                                              {Op::gelu, {{"approximate", std::string("erf")}}},
                                              {Op::relu, {}},
                                              {Op::silu, {}}};
  for (size_t i = 0; i < std::size(activations); ++i) {
    b.enter(text("block.", i));
    b.enter("mlp");
    const auto linear = [&](Value in, const std::string& name, int64_t inner, int64_t columns) {
      return b(Op::linear, {in, parameter(name + ".weight", {inner, columns}), parameter(name + ".bias", {columns})});
    };
    Value h = b.reshape(linear(b.reshape(x, rows), "expand", kWidth, 3 * kWidth), wide_samples);
    h = b(activations[i].first, {h}, activations[i].second);
    const Value y = b.reshape(linear(b.reshape(h, wide_rows), "contract", 3 * kWidth, kWidth), samples);
    b.leave();
    x = b.add(x, y);
    b.leave();
  }
  const auto loss = b.append(Op::mse, {x, b.input("target", dtype, samples)});
  program.loss_sum = loss[0];
  program.loss_count = loss[1];
  program = bind(program, kRows);
  autodiff(program);
  return program;
}

/// The bytes of every gradient.
std::vector<std::byte> gradients_of(Program program, Backend& backend, int threads) {
  MemoryLayout memory = memory_plan(program, in_turn(program, 1), kernel_needs(profile_of(backend, threads)).workspace);
  Storage storage(backend);
  Workers workers(threads);
  Executor executor(make_plan(program, std::move(memory), in_turn(program, 1)), storage, workers, nullptr);
  const Program& planned = executor.plan().program;
  std::vector<std::vector<std::byte>> inputs;
  for (size_t s = 0; s < planned.slots.size(); ++s) {
    const Slot& slot = planned.slots[s];
    if (slot.role != Role::parameter && slot.role != Role::input) continue;
    std::vector<std::byte>& bytes = inputs.emplace_back(static_cast<size_t>(slot.type.bytes()));
    for (int64_t i = 0; i < slot.type.shape.elements(); ++i) {  // multiples of 1/64 below 1: exact in every type
      const auto value = static_cast<float>((i * 29 + static_cast<int64_t>(s) * 7) % 61 - 30) / 64;
      const uint32_t single = std::bit_cast<uint32_t>(value);
      const auto half = slot.type.dtype == DType::bf16 ? static_cast<uint16_t>(single >> 16) : f16_of(value);
      std::memcpy(&bytes[static_cast<size_t>(i * bytes_of(slot.type.dtype))],
                  slot.type.dtype == DType::f32 ? static_cast<const void*>(&single) : &half,
                  static_cast<size_t>(bytes_of(slot.type.dtype)));
    }
    if (slot.role == Role::input)
      executor.bind(static_cast<SlotId>(s), bytes.data());
    else
      std::memcpy(as<std::byte>(executor.slot(static_cast<SlotId>(s))), bytes.data(), bytes.size());
  }
  executor.run({});
  std::vector<std::byte> gradients;
  for (size_t s = 0; s < planned.slots.size(); ++s) {
    if (planned.slots[s].role != Role::gradient) continue;
    const auto* data = as<std::byte>(executor.slot(static_cast<SlotId>(s)));
    gradients.insert(gradients.end(), data, data + planned.slots[s].type.bytes());
  }
  return gradients;
}

TEST(FusedProducts, LeaveEveryBitOfEveryChainInEveryElementType) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Program apart = residual_stream(dtype);
    Program together = apart;
    fuse(together);
    // Forward: two per block. Backward: the slope with the bias's sums, and the product towards the stream's gradient except in the first
    // block.
    EXPECT_EQ(count_of(together, Op::fused_linear), 4 * 4 - 1);
    EXPECT_EQ(count_of(together, Op::gelu_backward) + count_of(together, Op::relu_backward) + count_of(together, Op::silu_backward), 0);
    std::vector<std::unique_ptr<Backend>> backends;
    backends.push_back(make_reference_backend());
    for (const std::string& name : cpu_classes()) {
      const ForcedClass forced(name);
      backends.push_back(make_cpu_backend());
    }
    for (const auto& backend : backends)
      for (const int threads : {1, 3}) {
        const auto wanted = gradients_of(apart, *backend, 1);
        EXPECT_TRUE(std::ranges::any_of(wanted, [](std::byte b) { return b != std::byte{0}; }));
        EXPECT_TRUE(gradients_of(together, *backend, threads) == wanted) << backend->kernel_class() << " in " << name_of(dtype);
      }
  }
}

}  // namespace
}  // namespace st
