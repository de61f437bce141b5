// pack_weights' promise: a weight packed once a step gives the bits of one that is read as it lies in every micro-batch.
#include <gtest/gtest.h>

#include "cpu_classes.h"
#include "training.h"

namespace st {
namespace {

constexpr int64_t kContext = 7, kVocabulary = 61;

class PackedWeights : public ::testing::TestWithParam<int64_t> {  // rows of a micro-batch; of the most all products pack
 protected:
  std::unique_ptr<Trainer> trainer(bool packs, int threads = 2) const {
    Training training{.device = "cpu",
                      .threads = threads,
                      .options = {.layers = 2, .width = 39, .heads = 3, .context = kContext, .vocabulary = kVocabulary}};
    Recipe recipe;
    recipe.batch = GetParam();
    recipe.accumulate = 3;
    PlanOptions options;
    if (!packs) options.skip = {"pack_weights"};
    return std::make_unique<Trainer>(training.model(), recipe, nullptr, options);
  }

  std::vector<HostView> rows(int64_t count) const {
    return {plain_view("tokens", DType::i32, {count, kContext}, tokens_.data()),
            plain_view("targets", DType::i32, {count, kContext}, tokens_.data() + 1)};
  }

 private:
  static std::vector<int32_t> tokens() {
    std::vector<int32_t> made(200 * kContext + 1);
    for (size_t i = 0; i < made.size(); ++i) made[i] = static_cast<int32_t>((i * i + 3 * i) % kVocabulary);
    return made;
  }
  std::vector<int32_t> tokens_ = tokens();
};

TEST_P(PackedWeights, LeaveEveryBitForAnyThreadsAndKernels) {
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    const auto apart = trainer(false);
    EXPECT_EQ(apart->plan().memory.of(Arena::packed), 0);
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step) losses.push_back(apart->step(rows(3 * GetParam())).loss);
    for (const int threads : {1, 2, 3, 4}) {
      const auto together = trainer(true, threads);
      EXPECT_GT(together->plan().memory.of(Arena::packed), 0);
      for (const double loss : losses) EXPECT_EQ(together->step(rows(3 * GetParam())).loss, loss) << name;
      EXPECT_EQ(together->state_digest(), apart->state_digest()) << name << " with " << threads << " threads";
    }
  }
}

TEST_P(PackedWeights, LeaveEveryBitOfAStepWithFewerRows) {
  for (const int64_t left_out : {int64_t{1}, GetParam(), 2 * GetParam() + 1}) {
    const int64_t count = 3 * GetParam() - left_out;
    if (count < 1) continue;
    const auto apart = trainer(false), together = trainer(true);
    for (int step = 0; step < 3; ++step) EXPECT_EQ(together->step(rows(count)).loss, apart->step(rows(count)).loss) << count << " rows";
    EXPECT_EQ(together->state_digest(), apart->state_digest()) << count << " rows";
  }
}

// A host may write the weights between two slices of a step, or train the model elsewhere: the micro-batches after that see the new ones.
TEST_P(PackedWeights, AreThoseThatTheHostWroteBetweenTwoSlices) {
  const auto run = [&](bool packs, bool writes) {
    const auto it = trainer(packs);
    const std::string name = "block.0.mlp.expand.weight";
    std::vector<float> values(39 * 4 * 39);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 100;
    int slices = 0;
    while (!it->advance(rows(3 * GetParam()), 0))
      if (++slices == 100 && writes)
        it->model().set(it->model().parameter_named(name), plain_view(name, DType::f32, {39, 4 * 39}, values.data()));
    EXPECT_GT(slices, 300) << "the write must come between micro-batches that have begun and others";
    return it->state_digest();
  };
  EXPECT_EQ(run(true, true), run(false, true));
  EXPECT_NE(run(true, true), run(true, false));
}

INSTANTIATE_TEST_SUITE_P(Rows, PackedWeights, ::testing::Values(1, 6, 60));

TEST(PackedWeightsInLittleMemory, AreDoneWithout) {
  const auto trainer = [](int64_t limit) {
    const auto context =
        std::make_shared<Context>(ContextOptions{.threads = 2, .memory_limit = limit, .log = {}, .parallel = {}, .memory = {}});
    const auto model = std::make_shared<Model>(context, build_gpt(odd_gpt()), 1);
    return std::make_unique<Trainer>(model, Recipe{.batch = 2, .accumulate = 2}, std::make_shared<Sequences>(50, 7, 17));
  };
  const auto ample = trainer(0);
  const int64_t packed = ample->plan().memory.of(Arena::packed);
  EXPECT_GT(packed, 0);
  const auto scarce = trainer(ample->memory_bytes() - packed / 2);
  EXPECT_EQ(scarce->plan().memory.of(Arena::packed), 0);
  EXPECT_EQ(losses_of(*scarce, 2), losses_of(*ample, 2));
  EXPECT_EQ(scarce->state_digest(), ample->state_digest());
  EXPECT_THROW(trainer(ample->memory_bytes() - 2 * packed), Error) << "nothing else can be left out";
}

}  // namespace
}  // namespace st
