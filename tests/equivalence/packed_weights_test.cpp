// pack_weights: a weight packed once per step gives the same bits as one read unpacked in every micro-batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "cpu_classes.h"
#include "token_rows.h"
#include "training.h"

namespace st {
namespace {

struct PackedCase {
  int64_t rows;  // per micro-batch; with the largest number all products pack
  std::string precision = "fp32";
};

void PrintTo(const PackedCase& c, std::ostream* out) { *out << c.precision << ", " << c.rows << " rows"; }

class PackedWeights : public ::testing::TestWithParam<PackedCase> {
 protected:
  static constexpr int64_t kContext = 7, kVocabulary = 61;

  static int64_t micro_batch() { return GetParam().rows; }
  std::unique_ptr<Trainer> trainer(bool packs, int threads = 2) const {
    const Training training{.device = "cpu",
                            .threads = threads,
                            .options = {.layers = 2, .width = 39, .heads = 3, .context = kContext, .vocabulary = kVocabulary}};
    PlanOptions options;
    if (!packs) options.skip = {"pack_weights"};
    const Recipe recipe{.precision = GetParam().precision, .batch = micro_batch(), .accumulate = 3};
    return std::make_unique<Trainer>(training.model(), recipe, nullptr, options);
  }

  const TokenRows all_{200, kContext, kVocabulary};
};

TEST_P(PackedWeights, LeaveEveryBitForAnyThreadsAndKernels) {
  for (const std::string& name : cpu_classes()) {
    const ForcedClass forced(name);
    const auto apart = trainer(false);
    EXPECT_EQ(apart->plan().memory.of(Arena::packed) > 0, GetParam().precision != "fp32") << "working copies in 16 bits";
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step) losses.push_back(apart->step(all_.first(3 * micro_batch())).loss);
    for (const int threads : {1, 2, 3, 4}) {
      const auto together = trainer(true, threads);
      EXPECT_GT(together->plan().memory.of(Arena::packed), 0);
      for (const double loss : losses) EXPECT_EQ(together->step(all_.first(3 * micro_batch())).loss, loss) << name;
      EXPECT_EQ(together->state_digest(), apart->state_digest()) << name << " with " << threads << " threads";
    }
  }
}

TEST_P(PackedWeights, LeaveEveryBitOfAStepWithFewerRows) {
  for (const int64_t left_out : {int64_t{1}, micro_batch(), 2 * micro_batch() + 1}) {
    const int64_t count = 3 * micro_batch() - left_out;
    if (count < 1) continue;
    const auto apart = trainer(false), together = trainer(true);
    EXPECT_GT(together->plan().memory.of(Arena::packed), apart->plan().memory.of(Arena::packed));
    for (const int64_t rows : {count, 3 * micro_batch(), count})
      EXPECT_EQ(together->step(all_.first(rows)).loss, apart->step(all_.first(rows)).loss) << rows << " rows";
    EXPECT_EQ(together->state_digest(), apart->state_digest()) << count << " rows";
  }
}

// A host may write the weights between two slices of a step, or train the model elsewhere: later micro-batches use the new weights.
TEST_P(PackedWeights, AreThoseThatTheHostWroteBetweenTwoSlices) {
  const auto run = [&](bool packs, bool writes) {
    const auto it = trainer(packs);
    const std::string name = "block.0.mlp.expand.weight";
    std::vector<float> values(39 * 4 * 39);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 100;
    const auto& instructions = it->plan().instructions;  // a slice runs one of them
    const int64_t first = std::ranges::count(instructions, 0, &Instruction::micro_batch);
    EXPECT_GT(std::ssize(instructions), 2 * first) << "the write must come between micro-batches that have begun and others";
    int64_t slices = 0;
    while (!it->advance(all_.first(3 * micro_batch()), 0))
      if (++slices == first && writes)
        it->model().set(it->model().parameter_named(name), plain_view(name, DType::f32, {39, 4 * 39}, values.data()));
    return it->state_digest();
  };
  EXPECT_EQ(run(true, true), run(false, true));
  EXPECT_NE(run(true, true), run(true, false));
}

INSTANTIATE_TEST_SUITE_P(Rows, PackedWeights, ::testing::Values(PackedCase{1}, PackedCase{6}, PackedCase{60}, PackedCase{8, "bf16"}),
                         [](const auto& test) { return test.param.precision + "_" + std::to_string(test.param.rows); });

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
