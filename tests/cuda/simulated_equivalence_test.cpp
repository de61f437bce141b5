// A covering selection of tests/equivalence on the simulated device, or on a GPU: any two settings that change no bit occur in one
// training, which ends in the state of one rank. Micro-batches are ragged, and so are their rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "device_name.h"
#include "equivalence/rank_training.h"
#include "saved_trainer.h"

namespace st {
namespace {

/// The settings that results depend on. The tensor degree is another.
enum class Numbers { fp32, bf16, fp16 };

/// What happens after the second of three steps.
enum class Resume { none, of_one_rank, by_one_rank };

/// A setting's place among its values; 0: that of one rank.
struct Selected {
  Numbers numbers;
  int tensor;
  int data, zero, schedule, recompute, offload, recordings, resume;
};
constexpr const char* kSchedules[] = {"", "1f1b", "zb-h1", "interleaved"};
constexpr const char* kRecomputes[] = {"none", "attention", "full"};
constexpr const char* kOffloads[] = {"none", "optimizer", "parameters", "gradients"};

using enum Numbers;
// The streams of a process have one order, in which all trainings of a kind run.
constexpr Selected kEager[] = {{fp32, 1, 1, 0, 3, 1, 2, 1, 2}, {fp32, 1, 2, 0, 1, 0, 2, 1, 0}, {fp32, 1, 2, 1, 3, 1, 2, 0, 1},
                               {fp32, 2, 2, 2, 2, 0, 2, 0, 0}, {fp32, 2, 2, 3, 3, 0, 3, 0, 2}, {fp32, 1, 3, 0, 3, 2, 0, 1, 0},
                               {fp32, 1, 3, 1, 0, 0, 1, 1, 1}, {fp32, 1, 3, 2, 3, 1, 1, 0, 1}};
constexpr Selected kLate[] = {{bf16, 2, 1, 0, 1, 0, 1, 0, 2},
                              {bf16, 1, 2, 2, 1, 2, 3, 1, 1},
                              {bf16, 2, 3, 1, 0, 2, 2, 0, 2},
                              {bf16, 1, 3, 1, 2, 1, 0, 0, 0},
                              {bf16, 1, 3, 3, 1, 1, 0, 0, 0}};
constexpr Selected kRandom[] = {{fp16, 2, 1, 0, 0, 0, 3, 1, 0}, {fp16, 2, 1, 0, 2, 2, 0, 0, 1}, {fp16, 2, 2, 1, 1, 0, 0, 0, 0},
                                {fp16, 2, 2, 3, 0, 1, 2, 1, 1}, {fp16, 2, 2, 3, 2, 2, 1, 1, 0}, {fp16, 1, 3, 1, 2, 1, 3, 0, 2},
                                {fp16, 2, 3, 2, 0, 1, 0, 1, 2}};

Training training_of(const Selected& s) {
  Training made{.device = kDevice, .recipe = {.batch = 2}};
  made.options = {.layers = s.numbers == fp32 ? 2 : 1, .width = 4, .heads = 2, .context = 2, .vocabulary = 6};
  made.recipe.micro_batches = 3;
  made.recipe.set("warmup", "2");
  const auto quoted = [](const char* word) { return text('"', word, '"'); };
  if (s.numbers == fp32) made.recipe.set("dropout", "0.1");
  if (s.numbers == bf16) made.recipe.set("ema_decay", "0.9");
  if (s.numbers == fp16) made.recipe.set("accumulate_dtype", "\"fp16\"");
  for (const char* const key : {"precision", "gradient_dtype"})
    made.recipe.set(key, quoted(s.numbers == fp32 ? "fp32" : s.numbers == bf16 ? "bf16" : "fp16"));
  const int64_t stages = s.schedule == 0 ? 1 : 2;
  made.recipe.ranks = s.data * s.tensor * stages;
  made.recipe.tensor = s.tensor;
  made.recipe.stages = stages;
  made.recipe.zero = s.zero;
  if (stages > 1) made.recipe.set("schedule", quoted(kSchedules[s.schedule]));
  made.recipe.set("recompute", quoted(kRecomputes[s.recompute]));
  made.recipe.set("offload", quoted(kOffloads[s.offload]));
  return made;
}

std::string recipe_of(const Selected& s) { return text(training_of(s).recipe.json(), s.recordings == 0 ? "" : ", nothing recorded"); }
void PrintTo(const Selected& s, std::ostream* out) { *out << recipe_of(s); }

/// On one rank, but for the tensor degree.
struct Alone {
  Outcome whole;
  std::string saved;  // after two steps
};

/// Rounds that are full, and one with two micro-batches, the second of one row.
constexpr int64_t kRows[] = {6, 3, 6};

void step(Trainer& trainer, int64_t from, int64_t to, Outcome& outcome) {
  const TokenRows rows(6, 2, 6);
  for (int64_t at = from; at < to; ++at) add(outcome, trainer.step(rows.first(kRows[at])));
  outcome.state = trainer.state_digest();
}

class SimulatedEquivalence : public testing::TestWithParam<Selected> {
 protected:
  static void SetUpTestSuite() { folder_ = std::make_unique<ScratchFolder>("simulated_equivalence"); }
  static void TearDownTestSuite() {
    folder_.reset();
    alone_.clear();
  }
  static const Alone& alone(const Selected& like) {
    const auto [found, is_new] = alone_.try_emplace({like.numbers, like.tensor});
    if (is_new) {
      const auto trainer = training_of({.numbers = like.numbers, .tensor = like.tensor, .data = 1}).trainer(false);
      found->second.saved = *folder_ / text(static_cast<int>(like.numbers), "of", like.tensor);
      step(*trainer, 0, 2, found->second.whole);
      save(*trainer, found->second.saved);
      step(*trainer, 2, 3, found->second.whole);
      EXPECT_LT(found->second.whole.skipped, 2);
    }
    return found->second;
  }
  static inline std::unique_ptr<ScratchFolder> folder_;

 private:
  static inline std::map<std::pair<Numbers, int>, Alone> alone_;
};

INSTANTIATE_TEST_SUITE_P(Eager, SimulatedEquivalence, testing::ValuesIn(kEager));
INSTANTIATE_TEST_SUITE_P(Late, SimulatedEquivalence, testing::ValuesIn(kLate));
INSTANTIATE_TEST_SUITE_P(Random, SimulatedEquivalence, testing::ValuesIn(kRandom));

TEST_P(SimulatedEquivalence, HasTheStateOfOneRank) {
  const Selected& s = GetParam();
  const Alone& one = alone(s);
  if (s.recordings != 0) setenv("SCALETRAIN_CUDA_SYNC", "1", 1);  // nothing is recorded
  const auto trainer = training_of(s).trainer(false);
  Outcome made;
  const auto resume_of = static_cast<Resume>(s.resume);
  if (resume_of == Resume::of_one_rank) {
    resume_from(one.saved, *trainer);
    made.told.assign(one.whole.told.begin(), one.whole.told.begin() + static_cast<int64_t>(one.whole.told.size() / 3 * 2));
    step(*trainer, 2, 3, made);
  } else if (resume_of == Resume::by_one_rank) {
    step(*trainer, 0, 2, made);
    save(*trainer, *folder_ / "split");
    const auto other = training_of({.numbers = s.numbers, .tensor = s.tensor, .data = 1}).trainer(false);
    resume_from(*folder_ / "split", *other);
    std::filesystem::remove_all(*folder_ / "split");
    step(*other, 2, 3, made);
  } else {
    step(*trainer, 0, 3, made);
  }
  unsetenv("SCALETRAIN_CUDA_SYNC");
  EXPECT_EQ(made, one.whole);
}

/// But ZeRO of one data rank, which has no effect, and two parts a stage of a model with fewer than four.
TEST(SimulatedEquivalences, HaveAnyTwoSettingsInOneTraining) {
  constexpr std::array kCounts = {3, 2, 3, 4, 4, 3, 4, 2, 3};
  using Places = std::array<int, kCounts.size()>;
  std::vector<Places> all;
  for (const std::span<const Selected> some : {std::span<const Selected>(kEager), {kLate}, {kRandom}})
    for (const Selected& s : some)
      all.push_back(
          {static_cast<int>(s.numbers), s.tensor - 1, s.data - 1, s.zero, s.schedule, s.recompute, s.offload, s.recordings, s.resume});
  for (size_t i = 0; i < kCounts.size(); ++i)
    for (size_t j = i + 1; j < kCounts.size(); ++j)
      for (int a = 0; a < kCounts[i]; ++a)
        for (int b = 0; b < kCounts[j]; ++b)
          if ((i != 2 || j != 3 || a > 0 || b == 0) && (i != 0 || j != 4 || a == 0 || b < 3)) {
            EXPECT_TRUE(std::ranges::any_of(all, [&](const Places& at) { return at[i] == a && at[j] == b; }))
                << "setting " << i << " at " << a << ", setting " << j << " at " << b;
          }
}

}  // namespace
}  // namespace st
