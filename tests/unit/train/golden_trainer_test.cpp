// A trainer's checkpoint of version 1, in tests/golden/checkpoint-v1/trainer, must always be resumable. Its content is checked twice: its
// digest is pinned here, and its weights equal those of the same three steps made now.
#include <gtest/gtest.h>

#include <cstdlib>

#include "saved_trainer.h"

namespace st {
namespace {

Training training_of_version_1() {
  Training training;
  training.options = {.layers = 1, .width = 4, .heads = 2, .context = 4, .vocabulary = 5};
  training.recipe = {.batch = 2, .accumulate = 2};
  return training;
}

TEST(GoldenTrainer, IsResumedFromForEver) {
  const std::string folder = ST_GOLDEN "/checkpoint-v1/trainer";
  const CheckpointReader reader(folder);
  EXPECT_EQ(reader.manifest().version, 1);
  EXPECT_EQ(reader.digest(), "ef1d52bbd4f3326520cf4270b4ff839e") << "written anew, by what it is to test";

  const auto resumed = training_of_version_1().trainer(), today = training_of_version_1().trainer();
  const ResumeReport report = resume_from(folder, *resumed);
  EXPECT_TRUE(report.missing.empty());
  EXPECT_TRUE(report.unexpected.empty());
  EXPECT_EQ(resumed->state_digest(), "ef1d52bbd4f3326520cf4270b4ff839e");

  losses_of(*today, 3);
  for (int steps = 0; steps < 2; ++steps) {  // at the saved step, and two steps later
    for (const LogicalTensor& t : reader.manifest().tensors) {
      if (t.kind != TensorKind::parameter) continue;
      const auto there = weights_of(resumed->model(), t.name), here = weights_of(today->model(), t.name);
      ASSERT_EQ(there.size(), here.size()) << t.name;
      for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-5) << t.name << " " << i;  // kernels may change bits
    }
    const auto there = losses_of(*resumed, 2), here = losses_of(*today, 2);
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(there[i], here[i], 1e-5);
  }
}

// Run it by hand, once per new version: ST_GOLDEN_TO=tests/golden/checkpoint-v2 resume_equivalence_test --gtest_also_run_disabled_tests
// --gtest_filter='GoldenTrainer.*'
TEST(GoldenTrainer, DISABLED_WritesThisVersion) {
  const char* to = std::getenv("ST_GOLDEN_TO");
  ASSERT_NE(to, nullptr);
  const auto trainer = training_of_version_1().trainer();
  losses_of(*trainer, 3);
  save(*trainer, std::string(to) + "/trainer");
}

}  // namespace
}  // namespace st
