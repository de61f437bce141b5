// fuse_loss: a loss fused with its gradient gives bitwise equal training runs and takes less memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "cpu_classes.h"
#include "training.h"

namespace st {
namespace {

const GptOptions kFusedLossGpt = {.layers = 2, .width = 39, .heads = 3, .context = 13, .vocabulary = 601};
const GptOptions kForTwoRanks = {.layers = 1, .width = 40, .heads = 4, .context = 13, .vocabulary = 602};

struct Trained {
  std::string digest;
  std::vector<double> losses;
  int64_t fused = 0, backward = 0;
  int64_t bytes = 0;  // activations and stash
};

Trained trained(const std::string& device, Recipe recipe, const std::vector<std::string>& skip) {
  recipe.device = device;
  std::vector<int32_t> tokens(8 * 13 + 1);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>((i * i + 3 * i) % 601);
  for (size_t i = 1; i < tokens.size(); i += 7) tokens[i] = 5;
  std::vector<int32_t> targets(tokens.begin() + 1, tokens.end());
  for (size_t i = 0; i < targets.size(); i += 11) targets[i] = -100;  // ignored
  const Shape shape = {8, 13};
  const std::vector<HostView> batch = {plain_view("tokens", DType::i32, shape, tokens.data()),
                                       plain_view("targets", DType::i32, shape, targets.data())};
  const auto context = std::make_shared<Context>(ContextOptions{.device = device, .threads = 2, .log = {}, .parallel = {}, .memory = {}});
  Trainer trainer(std::make_shared<Model>(context, build_gpt(recipe.tensor > 1 ? kForTwoRanks : kFusedLossGpt), 1), recipe, nullptr,
                  {.skip = skip, .print = {}});
  Trained made;
  for (int step = 0; step < 3; ++step) made.losses.push_back(trainer.step(batch).loss);
  made.digest = trainer.state_digest();
  for (const Section& section : trainer.plan().program.sections) {
    made.fused += std::ranges::count(section.graph.nodes, Op::fused_cross_entropy, &Node::op);
    made.backward += std::ranges::count(section.graph.nodes, Op::cross_entropy_backward, &Node::op);
    (section.phase == Phase::forward ? made.fused : made.backward) +=
        std::ranges::count(section.graph.nodes, Op::vocabulary_cross_entropy_backward, &Node::op);
  }
  made.bytes = trainer.plan().memory.of(Arena::activations) + trainer.plan().memory.of(Arena::stash);
  return made;
}

void expect_the_same(const std::string& device, const Recipe& recipe, const std::string& what) {
  const Trained apart = trained(device, recipe, {"fuse_loss"});
  const Trained together = trained(device, recipe, {});
  EXPECT_EQ(apart.fused, 0) << what;
  EXPECT_EQ(apart.backward, 1) << what;
  EXPECT_EQ(together.fused, 1) << what;
  EXPECT_EQ(together.backward, 0) << what;
  EXPECT_EQ(together.digest, apart.digest) << what;
  EXPECT_EQ(together.losses, apart.losses) << what;
  EXPECT_LT(together.bytes, apart.bytes) << what;
}

TEST(FusedLoss, LeavesEveryBitInEveryPrecisionAndClass) {
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    for (const char* precision : {"fp32", "bf16", "fp16"})
      for (const int64_t micro_batches : {1, 2})
        expect_the_same("cpu", {.precision = precision, .batch = 8 / micro_batches, .accumulate = micro_batches},
                        text(precision, " on ", name, ", ", micro_batches, " micro-batches"));
  }
}

TEST(FusedLoss, LeavesEveryBitOnTheReference) {
  for (const char* precision : {"fp32", "bf16"}) expect_the_same("reference", {.precision = precision, .batch = 8}, precision);
}

TEST(FusedLoss, LeavesEveryBitOfSmoothedLabelsAndAZLoss) {
  for (const char* precision : {"fp32", "bf16"})
    expect_the_same("cpu", {.precision = precision, .batch = 8, .label_smoothing = 0.1, .z_loss = 1e-3}, precision);
}

TEST(FusedLoss, LeavesEveryBitOfTensorRanks) {
  for (const char* precision : {"fp32", "bf16", "fp16"})
    for (const char* recompute : {"none", "blocks"})
      expect_the_same("cpu", {.precision = precision, .batch = 4, .accumulate = 2, .tensor = 2, .z_loss = 1e-3, .recompute = recompute},
                      precision);
}

TEST(FusedLoss, LeavesEveryBitBesideRecomputedBlocks) {
  Recipe recipe{.batch = 8};
  recipe.set("recompute", "\"blocks\"");
  expect_the_same("cpu", recipe, "recompute blocks");
}

}  // namespace
}  // namespace st
