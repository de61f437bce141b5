// A trainer: a step is made completely or not at all.
#include <fstream>
#include <limits>
#include <sstream>

#include "small_run.h"

namespace {

using namespace st::test;

// That a step keeps what it says, and that the bits stay: Recomputed of tests/equivalence.
TEST(Trainer, ThePlanSaysWhatRecomputeSaves) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto model =
      hold<HeldModel>(st_model_builtin, context, "gpt", R"({"layers":2,"width":16,"heads":2,"context":8,"vocabulary":11})", 1);
  const auto plan = [&](const char* keys) {
    const auto recipe = hold<HeldRecipe>(st_recipe_create, keys);
    return plan_of(hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr));
  };
  const std::string none = plan(R"({"batch":2,"dropout":0.1})"), blocks = plan(R"({"batch":2,"dropout":0.1,"recompute":"blocks"})");
  EXPECT_EQ(number_in(blocks, "stash_before"), number_in(none, "stash"));
  EXPECT_EQ(number_in(blocks, "stash_after"), number_in(blocks, "stash"));
  EXPECT_EQ(number_in(none, "stash_after"), number_in(none, "stash"));
  EXPECT_LT(number_in(blocks, "stash"), number_in(none, "stash") / 2);
  EXPECT_EQ(number_in(none, "extra_flops"), 0);
  // Two blocks of 16 tokens: three products of width 16 by 3, 1 and 4 times that, and causal attention over 8 tokens.
  EXPECT_EQ(number_in(blocks, "extra_flops"), 2 * (2 * 16 * 16 * 16 * 8 + 4 * 16 * 16 * 9 / 2));
  EXPECT_NE(blocks.find(R"({"scope":"block.1","stash_saved":)"), std::string::npos) << blocks;
}

TEST(Trainer, TellsWhereTheTimeOfItsRanksWent) {
  const char* json = "";
  SineRun alone(R"({"batch": 4, "accumulate": 2})"), both(R"({"batch": 4, "accumulate": 2, "ranks": 2})");
  ASSERT_TRUE(works(alone.step()));
  EXPECT_EQ(text_of(st_trainer_timeline, alone.trainer), R"({"steps":[],"ranks":[]})");
  EXPECT_EQ(text_of(st_trainer_timeline, both.trainer), R"({"steps":[],"ranks":[]})");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(works(both.step()));
  ASSERT_TRUE(works(st_trainer_timeline(both.trainer, &json)));
  const std::string told = json;
  EXPECT_TRUE(told.starts_with(R"({"steps":[{"step":5,"straggler":1)")) << told;
  for (const char* part : {R"({"step":20,"straggler":1)", R"("ranks":[{"rank":0,"step":20,"milliseconds":)",
                           R"({"rank":1,"step":20,"milliseconds":)", R"("collective":"reduce_scatter")"})
    EXPECT_NE(told.find(part), std::string::npos) << part << " in " << told;
}

TEST(Trainer, ListsTheActionsOfItsStages) {
  SmallRun run({}, nullptr, R"({"batch": 3, "accumulate": 2, "warmup": 2, "stages": 2})");
  EXPECT_EQ(text_of(st_trainer_timeline, run.trainer), R"({"steps":[],"ranks":[]})");
  const TokenBatch batch(6, 1);
  ASSERT_TRUE(works(st_trainer_step(run.trainer, 2, batch.views(), nullptr)));
  const std::string json = text_of(st_trainer_timeline, run.trainer);
  for (const char* part : {R"({"rank":0,"step":1,"milliseconds":)", R"("stage":0,"data_rank":0,"tensor_rank":0,"bubble":0)",
                           R"({"rank":1,"step":1,"milliseconds":)", R"("stage":1,"data_rank":0,"tensor_rank":0,"bubble":0)",
                           R"({"phase":"backward","chunk":0,"micro_batch":1,"began_us":)",
                           R"("actions":[{"phase":"forward","chunk":0,"micro_batch":0,"began_us":)"})
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
  const auto count = [&](const std::string& part) {
    size_t found = 0;
    for (size_t at = json.find(part); at != std::string::npos; at = json.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("\"phase\":"), 2U * 4);  // of each stage: forward and backward of two micro-batches
  EXPECT_EQ(count("\"waited_us\":"), 2U * 4);
  EXPECT_EQ(count("\"bubble\":"), 2U);
}

TEST(Trainer, ReportsWhatAStepDid) {
  SineRun run(R"({"batch": 4, "accumulate": 2, "warmup": 0, "lr": 0.01})");
  auto report = filled(st_step_report_init);
  double first = 0;
  for (int i = 1; i <= 200; ++i) {
    ASSERT_TRUE(works(run.step(&report)));
    EXPECT_EQ(report.step, i);
    EXPECT_EQ(report.skipped, 0);
    if (i == 1) first = report.loss;
  }
  EXPECT_LT(report.loss, 0.5 * first);
  EXPECT_EQ(report.lr, 0.01);
  EXPECT_EQ(report.loss_scale, 1);
  EXPECT_GT(report.grad_norm, 0);
  EXPECT_GT(report.milliseconds, 0);
  EXPECT_EQ(report.tokens, 200 * 8);
}

// Views of the wrong memory: wrong_views.cpp.
TEST(Trainer, InputsThatAreMissingAreNamed) {
  SineRun run;
  const std::string before = run.digest();
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_step(run.trainer, 1, run.views, nullptr), {"\"y\"", "missing"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_step(run.trainer, -1, run.views, nullptr), {"-1"}));
  run.views[0].name = "z";
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, run.step(), {"\"x\"", "missing"}));
  EXPECT_EQ(run.digest(), before);
}

TEST(Trainer, DataThatDoesNotFitTheModelIsRefused) {
  SmallRun run;
  const auto other = hold<HeldData>(st_data_files, run.context, text_file("context12.txt", 500).c_str(), R"({"context": 12})");
  auto evaluation = filled(st_evaluation_init);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_evaluate(run.trainer, other, &evaluation), {"tokens", "8", "12"}));
  HeldTrainer trainer;
  const auto mlp = hold<HeldModel>(st_model_builtin, run.context, "mlp", nullptr, 0);
  // Reported at creation or at the first step.
  st_status status = st_trainer_create(mlp, run.recipe, other, trainer.out());
  if (status == ST_OK) status = st_trainer_step(trainer, 0, nullptr, nullptr);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, status, {"\"x\""}));
}

// With data, three micro-batches are in the host's memory: the one in use and two ahead. Each field of each starts on a cache line: 3 rows
// x 8 tokens x 4 bytes are 96, rounded to 128.
TEST(Trainer, CountsThePrefetchBuffersOfDataBesides) {
  SmallRun run(text_file("prefetch.txt", 3000));
  const auto report = filled(st_step_report_init, st_trainer_step, run.trainer, 0, nullptr);
  EXPECT_EQ(report.memory_bytes, number_in(plan_of(run.trainer), "device_total") + 3 * 2 * 128);
}

TEST(Trainer, ARefusedLogLeavesTheFileAsItWas) {
  const std::string path = file_of("precious.jsonl", "precious\n");
  EXPECT_TRUE(fails(ST_INVALID_HANDLE, st_trainer_log(nullptr, path.c_str())));
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "precious");
}

TEST(Trainer, AStepWhoseLogLineIsLostIsDoneAllTheSame) {
  SineRun run, plain;
  ASSERT_TRUE(works(st_trainer_log(run.trainer, "/dev/full")));
  auto report = filled(st_step_report_init);
  EXPECT_TRUE(fails(ST_IO, run.step(&report), {"step 1 is done"}));
  EXPECT_EQ(report.step, 1);
  EXPECT_TRUE(works(run.step(&report)));  // the log is closed
  EXPECT_EQ(report.step, 2);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(works(plain.step()));
  EXPECT_EQ(run.digest(), plain.digest());
}

TEST(Trainer, BatchesGivenByHandTakeNothingFromTheData) {
  const std::string text = text_file("by_hand.txt", 2000);
  SmallRun mixed(text), plain(text);
  const TokenBatch batch(6, 1);
  ASSERT_TRUE(works(st_trainer_step(mixed.trainer, 2, batch.views(), nullptr)));
  ASSERT_TRUE(works(st_trainer_cancel(mixed.trainer)));
  EXPECT_TRUE(fails(ST_CANCELLED, st_trainer_step(mixed.trainer, 0, nullptr, nullptr)));
  ASSERT_TRUE(works(st_trainer_step(mixed.trainer, 0, nullptr, nullptr)));
  // The undisturbed trainer takes the same batch explicitly, and then the data's first rows without a cancel in between.
  ASSERT_TRUE(works(st_trainer_step(plain.trainer, 2, batch.views(), nullptr)));
  ASSERT_TRUE(works(st_trainer_step(plain.trainer, 0, nullptr, nullptr)));
  EXPECT_EQ(mixed.digest(), plain.digest());
}

TEST(Trainer, KeepsALogAndWritesAReport) {
  SmallRun run(text_file("log.txt", 3000));
  const std::string log = file_of("log.jsonl", ""), page = file_of("report.html", "");
  ASSERT_TRUE(works(st_trainer_log(run.trainer, log.c_str())));
  ASSERT_TRUE(works(st_trainer_run(run.trainer, 3, nullptr, nullptr)));
  ASSERT_TRUE(works(st_trainer_log_end(run.trainer, std::numeric_limits<double>::quiet_NaN())));
  std::vector<std::string> lines;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(number_in(lines[2], "step"), 3);
  EXPECT_NE(lines[3].find("\"state\":\"" + run.digest() + "\""), std::string::npos) << lines[3];
  EXPECT_NE(lines[3].find("\"validation_loss\":null"), std::string::npos) << lines[3];

  ASSERT_TRUE(works(st_trainer_write_report(run.trainer, page.c_str(), R"({"title": "A <small> run"})")));
  std::ostringstream html;
  html << std::ifstream(page).rdbuf();
  EXPECT_NE(html.str().find("A &lt;small&gt; run"), std::string::npos);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_write_report(run.trainer, page.c_str(), "{"), {"facts"}));
  const st_status status = st_trainer_log(run.trainer, "/no/such/folder/log.jsonl");
  EXPECT_TRUE(fails(ST_IO, status, {"/no/such/folder/log.jsonl"}));
}

}  // namespace
