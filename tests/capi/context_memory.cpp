// Memory of a context's buffers, current and peak, in total and by role.
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "all_kinds.h"
#include "small_run.h"

namespace {

using namespace st::test;

constexpr std::array<const char*, 14> kRoles = {"parameters", "gradients", "optimizer", "activations", "stash", "buckets", "packed",
                                                "workspace",  "control",   "inputs",    "tensors",     "other", "file",    "host"};

st_memory_stats checked_memory_of(st_context* context) {
  const auto stats = memory_of(context);
  int64_t sum = 0;
  for (size_t role = 0; role < ST_MEMORY_ROLES; ++role) {
    if (role == ST_MEMORY_FILE || role == ST_MEMORY_HOST) continue;
    sum += stats.role_bytes[role];
    EXPECT_GE(stats.role_bytes[role], 0) << role;
    EXPECT_GE(stats.role_peak_bytes[role], stats.role_bytes[role]) << role;
    EXPECT_LE(stats.role_peak_bytes[role], stats.peak_bytes) << role;
  }
  EXPECT_EQ(sum, stats.allocated_bytes) << "the roles must add up to the total";
  EXPECT_GE(stats.peak_bytes, stats.allocated_bytes);
  return stats;
}

int64_t planned(st_trainer* trainer, const char* role) {
  const char* plan = "";
  EXPECT_TRUE(works(st_trainer_plan(trainer, &plan)));
  const char* at = std::strstr(plan, ("\"" + std::string(role) + "\":").c_str());
  EXPECT_NE(at, nullptr) << role << " in " << plan;
  return at == nullptr ? -1 : std::atoll(std::strchr(at, ':') + 1);
}

HeldTensor tensor_of(st_context* context, int64_t bytes) { return hold<HeldTensor>(st_tensor_create, context, ST_U8, 1, &bytes); }

TEST(ContextMemory, OfATrainerIsThePlansByRole) {
  for (const char* recipe : {R"({"batch": 3, "accumulate": 2})", R"({"batch": 4, "precision": "fp16", "optimizer": "adamw-8bit"})",
                             R"({"batch": 2, "recompute": "blocks", "optimizer": "muon", "clip": 0})"}) {
    SmallRun run({}, nullptr, recipe);
    for (int32_t role = ST_MEMORY_PARAMETERS; role <= ST_MEMORY_CONTROL; ++role) {
      const auto stats = checked_memory_of(run.context);
      EXPECT_EQ(stats.role_bytes[role], planned(run.trainer, kRoles[static_cast<size_t>(role)])) << kRoles[static_cast<size_t>(role)];
    }
    const auto stats = checked_memory_of(run.context);
    EXPECT_EQ(stats.allocated_bytes, planned(run.trainer, "device_total"));
    EXPECT_EQ(stats.peak_bytes, stats.allocated_bytes) << "planning allocates none";
    EXPECT_GT(stats.role_bytes[ST_MEMORY_PARAMETERS], 0);
    EXPECT_GT(stats.role_bytes[ST_MEMORY_GRADIENTS], 0);
    EXPECT_GT(stats.role_bytes[ST_MEMORY_OPTIMIZER], 0);
    EXPECT_GT(stats.role_bytes[ST_MEMORY_ACTIVATIONS], 0);
    EXPECT_GT(stats.role_bytes[ST_MEMORY_STASH], 0);
  }
}

TEST(ContextMemory, WhatLiesInAFileIsCountedApart) {
  const std::string folder = testing::TempDir();
  SmallRun run({}, nullptr, (R"({"batch": 2, "offload": "parameters", "offload_folder": ")" + folder + "\"}").c_str());
  const auto stats = checked_memory_of(run.context);
  EXPECT_EQ(stats.role_bytes[ST_MEMORY_PARAMETERS], 0);
  EXPECT_EQ(stats.role_bytes[ST_MEMORY_OPTIMIZER], 0);
  EXPECT_EQ(stats.role_bytes[ST_MEMORY_FILE], planned(run.trainer, "parameters") + planned(run.trainer, "optimizer"));
  EXPECT_EQ(stats.role_bytes[ST_MEMORY_FILE], planned(run.trainer, "file_total"));
  EXPECT_EQ(stats.allocated_bytes, planned(run.trainer, "device_total"));
}

TEST(ContextMemory, StepsChangeNoCount) {
  SmallRun run(text_file("memory.txt", 3000));
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  const auto before = checked_memory_of(run.context);
  EXPECT_EQ(before.role_bytes[ST_MEMORY_INPUTS], 3 * 2 * 128) << "three micro-batches ahead, see Trainer.CountsThePrefetchBuffersOfData";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  const auto after = checked_memory_of(run.context);
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  for (size_t role = 0; role < ST_MEMORY_ROLES; ++role) EXPECT_EQ(after.role_bytes[role], before.role_bytes[role]) << role;
}

TEST(ContextMemory, IsGoneWithWhatItWasForAndThePeakStays) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto nothing = checked_memory_of(context);
  EXPECT_EQ(nothing.peak_bytes, 0);
  EXPECT_EQ(nothing.limit_bytes, 0);
  EXPECT_GT(nothing.available_bytes, 0);
  {
    const auto tensor = tensor_of(context, 1000);
    const auto model = hold<HeldModel>(st_model_builtin, context, "gpt", kSmallGpt, 1);
    auto predictor = hold<HeldPredictor>(st_predictor_create, model, nullptr);
    EXPECT_EQ(checked_memory_of(context).role_bytes[ST_MEMORY_TENSORS], 1000);
    const int64_t weights = checked_memory_of(context).role_bytes[ST_MEMORY_PARAMETERS];
    predictor.reset();
    EXPECT_EQ(checked_memory_of(context).role_bytes[ST_MEMORY_PARAMETERS], weights / 2) << "the predictor's snapshot";
  }
  const auto after = checked_memory_of(context);
  EXPECT_EQ(after.allocated_bytes, 0);
  for (size_t role = 0; role < ST_MEMORY_ROLES; ++role) EXPECT_EQ(after.role_bytes[role], 0) << role;
  EXPECT_EQ(after.role_peak_bytes[ST_MEMORY_TENSORS], 1000);
  EXPECT_GT(after.peak_bytes, after.role_peak_bytes[ST_MEMORY_PARAMETERS]);
}

TEST(ContextMemory, OfOneOfEachKindIsAllOfSomeRoleAndGivenBack) {
  HeldContext kept;
  {
    AllKinds kinds;
    const auto stats = checked_memory_of(kinds.run.context);
    EXPECT_EQ(stats.role_bytes[ST_MEMORY_GRADIENTS] - planned(kinds.run.trainer, "gradients"), 2 * 64)
        << "the accumulator's sums and the sharded optimizer's, 16 of f32 each";
    EXPECT_EQ(stats.role_bytes[ST_MEMORY_OTHER], 0) << "no call is running";
    EXPECT_GT(stats.role_bytes[ST_MEMORY_PACKED], planned(kinds.run.trainer, "packed"));
    kept = std::move(kinds.run.context);
  }
  EXPECT_EQ(checked_memory_of(kept).allocated_bytes, 0);
}

TEST(ContextMemory, PeaksBeginAnewWhereTheyAreReset) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto small = tensor_of(context, 100);
  tensor_of(context, 3000).reset();
  EXPECT_EQ(checked_memory_of(context).peak_bytes, 3100);
  tensor_of(context, 2000).reset();
  EXPECT_EQ(checked_memory_of(context).peak_bytes, 3100);
  ASSERT_TRUE(works(st_context_reset_peak(context)));
  EXPECT_EQ(checked_memory_of(context).peak_bytes, 100);
  EXPECT_EQ(checked_memory_of(context).role_peak_bytes[ST_MEMORY_TENSORS], 100);
  tensor_of(context, 2000).reset();
  EXPECT_EQ(checked_memory_of(context).peak_bytes, 2100);
  EXPECT_EQ(checked_memory_of(context).role_peak_bytes[ST_MEMORY_TENSORS], 2100);
}

TEST(ContextMemory, OneContextsIsNotAnothers) {
  auto options = filled(st_context_options_init);
  options.memory_limit = 5000;
  const auto one = hold<HeldContext>(st_context_create, &options);
  const auto other = hold<HeldContext>(st_context_create, nullptr);
  EXPECT_EQ(checked_memory_of(one).limit_bytes, 5000);
  const auto tensor = tensor_of(one, 4000);
  const int64_t dims[] = {2000};
  HeldTensor refused;
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, st_tensor_create(one, ST_U8, 1, dims, refused.out()), {"memory_limit"}));
  EXPECT_EQ(checked_memory_of(one).peak_bytes, 4000) << "a refused allocation must not count";
  EXPECT_EQ(checked_memory_of(other).peak_bytes, 0);
}

TEST(ContextMemory, AddsUpWhileOtherThreadsAllocate) {
  auto context = hold<HeldContext>(st_context_create, nullptr);
  std::vector<std::thread> threads;
  for (int64_t bytes = 1; bytes <= 3; ++bytes)
    threads.emplace_back([&context, bytes] {
      for (int i = 0; i < 300; ++i) tensor_of(context, 1000 * bytes).reset();
    });
  for (int i = 0; i < 300; ++i) {
    const auto stats = checked_memory_of(context);  // each adds up
    EXPECT_LE(stats.peak_bytes, 6000);
    if (i % 16 == 0) {
      EXPECT_TRUE(works(st_context_reset_peak(context)));
    }
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(checked_memory_of(context).allocated_bytes, 0);
}

TEST(ContextMemory, IsToldToAProgramOfTheFirstHeaderAsFarAsItKnows) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto tensor = tensor_of(context, 1000);
  st_memory_stats stats;
  std::memset(&stats, 0xAB, sizeof stats);
  constexpr size_t kFirst = offsetof(st_memory_stats, peak_bytes);
  ASSERT_TRUE(works(st_memory_stats_init(&stats, kFirst)));
  ASSERT_TRUE(works(st_context_memory(context, &stats)));
  EXPECT_EQ(stats.struct_size, kFirst);
  EXPECT_EQ(stats.allocated_bytes, 1000);
  EXPECT_GT(stats.resident_bytes, 0);
  EXPECT_EQ(stats.peak_bytes, static_cast<int64_t>(0xABABABABABABABABU)) << "nothing may be written beyond its size";
  EXPECT_EQ(stats.role_peak_bytes[ST_MEMORY_ROLES - 1], stats.peak_bytes);
}

TEST(ContextMemory, RolesHaveNames) {
  for (int32_t role = 0; role < static_cast<int32_t>(kRoles.size()); ++role)
    EXPECT_EQ(text_of(st_memory_role_name, role), kRoles[static_cast<size_t>(role)]);
  const char* name = "file";
  for (const int32_t none : {-1, 14, static_cast<int32_t>(ST_MEMORY_ROLES), 1 << 30})
    EXPECT_TRUE(fails(ST_NOT_FOUND, st_memory_role_name(none, &name), {"st_memory_role_name", std::to_string(none)}));
  EXPECT_STREQ(name, "file") << "a call that fails writes nothing";
}

}  // namespace
