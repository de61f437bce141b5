// Thousands of objects of every kind, created and destroyed: nothing remains.
#include <cstdio>
#include <cstdlib>

#include "checkpoint_folder.h"
#include "sanitized.h"

namespace {

using namespace st::test;
using st::kSanitized;

int64_t resident_bytes(st_context* context) { return memory_of(context).resident_bytes; }

// A sanitizer keeps freed memory, so memory is not checked there.
int rounds_wanted() {
  if (std::getenv("ST_LONG_TRIALS") != nullptr) return 10000;
  return kSanitized ? 20 : 1000;
}

TEST(Churn, OfEveryNounLeavesMemoryFlatAndNoHandle) {
  const int rounds = rounds_wanted();
  auto options = filled(st_context_options_init);
  options.threads = 1;
  const auto watch = hold<HeldContext>(st_context_create, nullptr);
  int64_t handles = 0, after = 0, resident = 0;
  ASSERT_TRUE(works(st_live_handles(nullptr, &handles)));
  const std::string text = text_file("churn.txt", 300);
  const std::string weights = text + ".safetensors";
  const int64_t column = 16;
  const CheckpointFolder folder;
  for (int i = 0; i < rounds; ++i) {
    float sixteen[16] = {}, theirs[16] = {};  // the all-reduce borrows them until its pending is destroyed
    HeldPending save;
    HeldCommunicator ranks[2];
    const auto context = hold<HeldContext>(st_context_create, &options);
    const auto graph = hold<HeldGraph>(st_graph_create, context);
    sine_graph(graph);
    const auto model = hold<HeldModel>(st_model_create, graph, 1);
    const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
    const auto data = hold<HeldData>(st_data_files, context, text.c_str(), R"({"context": 8})");
    const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
    const auto gpt = hold<HeldModel>(st_model_builtin, context, "gpt", R"({"layers": 1, "width": 8, "heads": 1, "context": 4})", 1);
    const auto predictor = hold<HeldPredictor>(st_predictor_create, gpt, nullptr);
    const auto tensor = hold<HeldTensor>(st_tensor_create, context, ST_F32, 1, &column);
    const auto pending = hold<HeldPending>(st_model_write_file, gpt, weights.c_str());
    const auto plan = hold<HeldPlan>(st_plan_create, gpt, recipe, R"({"machine": "h200"})");
    auto problem = filled(st_gemm_problem_init);
    problem.m = problem.n = problem.k = 4;
    const auto gemm = hold<HeldGemm>(st_gemm_plan_create, context, &problem, nullptr);
    const int64_t square[] = {4, 4};
    const st_view b = {ST_F32, 2, square, nullptr, sixteen, sizeof sixteen};
    const auto packed = hold<HeldPacked>(st_gemm_pack, gemm, &b);
    const auto schedule = hold<HeldSchedule>(st_schedule_create, R"({"schedule": "table", "lr_table": "0:1 9:0.5"})");
    const auto sampler = hold<HeldSampler>(st_distributed_sampler_create, 8, nullptr);
    const auto loss_scaler = hold<HeldLossScaler>(st_loss_scaler_create, context, nullptr);
    const st_named_view weight = {"w", b};
    const auto optimizer = hold<HeldOptimizer>(st_optimizer_create, context, nullptr, 1, &weight);
    const auto accumulator = hold<HeldAccumulator>(st_accumulator_create, context, 2, 1, &b);
    const auto alone = hold<HeldCommunicator>(st_communicator_local, context, 1, nullptr);
    const auto data_parallel = hold<HeldDataParallel>(st_data_parallel_create, alone, 1, &weight, nullptr);
    ASSERT_TRUE(works(st_data_parallel_gradient_ready(data_parallel, 0)));
    auto stage_2 = filled(st_sharded_optimizer_options_init);
    stage_2.stage = 2;
    const auto sharded = hold<HeldShardedOptimizer>(st_sharded_optimizer_create, alone, nullptr, 1, &weight, &stage_2);
    ASSERT_TRUE(works(st_sharded_optimizer_gradient_ready(sharded, 0, &b)));
    const auto checkpoint = hold<HeldCheckpoint>(st_checkpoint_create, context, folder.c_str(), nullptr);
    st_communicator* made[2] = {};
    ASSERT_TRUE(works(st_communicator_local(context, 2, nullptr, made)));
    for (int rank = 0; rank < 2; ++rank) *ranks[rank].out() = made[rank];
    const st_view their_b = {ST_F32, 2, square, nullptr, theirs, sizeof theirs};
    const auto reduced = hold<HeldPending>(st_communicator_all_reduce, ranks[0], "b", &b, ST_REDUCE_SUM);
    ASSERT_TRUE(works(st_communicator_all_reduce(ranks[1], "b", &their_b, ST_REDUCE_SUM, nullptr)));
    if (i % 50 == 0) {  // waits for the disk
      ASSERT_TRUE(works(st_checkpoint_save(checkpoint, i, 1, &weight, nullptr, save.out())));
      ASSERT_TRUE(works(st_trainer_save_every(trainer, checkpoint, 1, 0)));
    }
    if (i == rounds / 10) resident = resident_bytes(watch);
  }
  const int64_t resident_after = resident_bytes(watch);
  if (!kSanitized) {
    EXPECT_LE(resident_after, resident + (int64_t{1} << 20));
  }
  std::printf("%d rounds: %.2f MiB resident after a tenth of them, %.2f MiB at the end\n", rounds, static_cast<double>(resident) / 0x1p20,
              static_cast<double>(resident_after) / 0x1p20);
  EXPECT_GT(resident, 0);
  ASSERT_TRUE(works(st_live_handles(nullptr, &after)));
  EXPECT_EQ(after, handles);
}

}  // namespace
