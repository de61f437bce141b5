// A trainer: a step is made completely or not at all.
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "small_run.h"

namespace {

using namespace st::test;

int64_t number_in(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\":");
  EXPECT_NE(at, std::string::npos) << key << " in " << json;
  return at == std::string::npos ? -1 : std::stoll(json.substr(at + key.size() + 3));
}

std::string plan_of(st_trainer* trainer) { return text_of(st_trainer_plan, trainer); }

// Through the C ABI: a step does not allocate what the plan reports as saved, and the weights are the same.
TEST(Trainer, ThePlanSaysWhatRecomputeSaves) {
  st_context* context = nullptr;
  ASSERT_TRUE(works(st_context_create(nullptr, &context)));
  std::map<std::string, std::string> plans, digests;
  for (const char* policy : {"none", "blocks"}) {
    st_model* model = nullptr;
    st_recipe* recipe = nullptr;
    st_trainer* trainer = nullptr;
    ASSERT_TRUE(works(st_model_builtin(context, "gpt", R"({"layers":2,"width":16,"heads":2,"context":8,"vocabulary":11})", 1, &model)));
    ASSERT_TRUE(works(st_recipe_create(R"({"batch":2,"dropout":0.1})", &recipe)));
    ASSERT_TRUE(works(st_recipe_set(recipe, "recompute", ("\"" + std::string(policy) + "\"").c_str())));
    ASSERT_TRUE(works(st_trainer_create(model, recipe, nullptr, &trainer)));
    const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4, 5};
    const int64_t dims[] = {2, 8};
    const st_view view = {ST_I32, 2, dims, nullptr, const_cast<int32_t*>(tokens.data()), 64};
    const st_named_view batch[] = {{"tokens", view}, {"targets", view}};
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(works(st_trainer_step(trainer, 2, batch, nullptr)));
    plans[policy] = plan_of(trainer);
    const std::string hex = text_of(st_trainer_digest, trainer);
    digests[policy] = hex;
    st_trainer_destroy(trainer);
    st_recipe_destroy(recipe);
    st_model_destroy(model);
  }
  st_context_destroy(context);
  EXPECT_EQ(digests["blocks"], digests["none"]);
  const std::string &none = plans["none"], &blocks = plans["blocks"];
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

TEST(Trainer, NanInABatchIsRefusedAndNothingIsLost) {
  SineRun run, undisturbed;
  for (SineRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(r->step()));
  const std::string before = run.digest();
  // Row 6 is in the second micro-batch: the gradients of the first are already accumulated by then.
  const float good = std::exchange(run.x[6], std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(fails(ST_NOT_FINITE, run.step(), {"\"x\"", "row 6", "NaN"}));
  EXPECT_EQ(run.digest(), before);
  run.x[6] = good;
  auto report = filled(st_step_report_init);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(works(run.step(&report)));
    ASSERT_TRUE(works(undisturbed.step()));
  }
  EXPECT_EQ(report.step, 4) << "a refused batch does not count as an attempt";
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(Trainer, ATokenOutsideTheVocabularyIsRefusedAndNothingIsLost) {
  SmallRun run, undisturbed;
  TokenBatch batch(6, 3);
  for (SmallRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(st_trainer_step(r->trainer, 2, batch.views(), nullptr)));
  for (const int32_t wrong : {-1, 256, std::numeric_limits<int32_t>::max()}) {
    const int32_t good = std::exchange(batch.tokens[40], wrong);
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_step(run.trainer, 2, batch.views(), nullptr), {"embedding", std::to_string(wrong)}));
    batch.tokens[40] = good;
    const int32_t target = std::exchange(batch.targets[40], wrong);
    EXPECT_TRUE(
        fails(ST_INVALID_ARGUMENT, st_trainer_step(run.trainer, 2, batch.views(), nullptr), {"cross_entropy", std::to_string(wrong)}));
    batch.targets[40] = target;
  }
  for (SmallRun* r : {&run, &undisturbed}) ASSERT_TRUE(works(st_trainer_step(r->trainer, 2, batch.views(), nullptr)));
  EXPECT_EQ(run.digest(), undisturbed.digest());
}

TEST(Trainer, ViewsThatAreNotTheModelsInputsAreRefused) {
  SineRun run;
  const std::string before = run.digest();
  const st_named_view good = run.views[0];
  const int64_t nine[] = {9, 1}, flat[] = {8}, negative[] = {-8, 1}, strides[] = {-1, 1};
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40}, large[] = {int64_t{1} << 62, 1};
  const auto expect_refused = [&](st_status status, std::initializer_list<std::string_view> words, const auto& change) {
    change(run.views[0]);
    EXPECT_TRUE(fails(status, run.step(), words));
    run.views[0] = good;
  };
  const auto bad = ST_INVALID_ARGUMENT;
  expect_refused(bad, {"\"x\"", "missing"}, [&](st_named_view& v) { v.name = "z"; });
  expect_refused(bad, {"\"x\"", "f32", "i32"}, [&](st_named_view& v) { v.view.dtype = ST_I32; });
  expect_refused(bad, {"99"}, [&](st_named_view& v) { v.view.dtype = 99; });
  expect_refused(bad, {"\"x\"", "[8, 1]", "[9, 1]"}, [&](st_named_view& v) { v.view.dims = nine, v.view.bytes = 36; });
  expect_refused(bad, {"\"x\"", "[8, 1]", "[8]"}, [&](st_named_view& v) { v.view.dims = flat, v.view.rank = 1; });
  expect_refused(bad, {"\"x\"", "-8"}, [&](st_named_view& v) { v.view.dims = negative; });
  expect_refused(bad, {"\"x\"", "1099511627776"}, [&](st_named_view& v) { v.view.dims = huge; });
  expect_refused(bad, {"\"x\"", "4611686018427387904"}, [&](st_named_view& v) { v.view.dims = large; });
  expect_refused(bad, {"\"x\"", "rank"}, [&](st_named_view& v) { v.view.rank = 9; });
  expect_refused(bad, {"\"x\"", "rank"}, [&](st_named_view& v) { v.view.rank = -1; });
  expect_refused(bad, {"\"x\"", "32 bytes", "31"}, [&](st_named_view& v) { v.view.bytes = 31; });
  expect_refused(bad, {"\"x\"", "-1"}, [&](st_named_view& v) { v.view.bytes = -1; });
  expect_refused(bad, {"\"x\"", "stride -1"}, [&](st_named_view& v) { v.view.strides = strides; });
  EXPECT_TRUE(fails(bad, st_trainer_step(run.trainer, 1, run.views, nullptr), {"\"y\"", "missing"}));
  EXPECT_TRUE(fails(bad, st_trainer_step(run.trainer, -1, run.views, nullptr), {"-1"}));
  EXPECT_EQ(run.digest(), before);
  EXPECT_TRUE(works(run.step()));
}

// With batch 4 and accumulate 2, five rows are micro-batches of four rows and one; an array with gaps gives the same rows.
TEST(Trainer, TakesFewerRowsThroughStrides) {
  SineRun plain, strided;
  const int64_t five[] = {5, 1}, every_third[] = {3, 1};
  for (SineRun* run : {&plain, &strided})
    for (st_named_view& view : run->views) view.view.dims = five;
  std::vector<float> apart[2];
  for (size_t v = 0; v < 2; ++v) {
    st_view& view = strided.views[v].view;
    for (int row = 0; row < 5; ++row) apart[v].insert(apart[v].end(), {static_cast<const float*>(view.data)[row], -1e30F, 1e30F});
    view.data = apart[v].data();
    view.strides = every_third;
    view.bytes = 13 * 4;  // to the end of the last element, and no further
  }
  auto report = filled(st_step_report_init);
  for (SineRun* run : {&plain, &strided}) ASSERT_TRUE(works(st_trainer_step(run->trainer, 2, run->views, &report)));
  EXPECT_EQ(plain.digest(), strided.digest());
  strided.views[0].view.bytes -= 1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, strided.step(), {"\"x\"", "52 bytes", "51"}));
  EXPECT_EQ(plain.digest(), strided.digest());
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

TEST(Trainer, TextOutsideTheModelsVocabularyIsRefused) {
  HeldTrainer trainer;
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto model =
      hold<HeldModel>(st_model_builtin, context, "gpt", R"({"layers":1,"width":8,"heads":1,"context":8,"vocabulary":50})", 0);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
  const auto data = hold<HeldData>(st_data_files, context, text_file("letters.txt", 300).c_str(), R"({"context": 8})");
  st_status status = st_trainer_create(model, recipe, data, trainer.out());
  if (status == ST_OK) status = st_trainer_step(trainer, 0, nullptr, nullptr);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, status, {"embedding", "0..49"}));
}

TEST(Trainer, ReportsTheBytesThatWerePlannedAndAllocated) {
  SmallRun run;
  TokenBatch batch(6, 1);
  const auto report = filled(st_step_report_init, st_trainer_step, run.trainer, 2, batch.views());
  EXPECT_EQ(report.memory_bytes, number_in(plan_of(run.trainer), "device_total"));
  const auto stats = memory_of(run.context);
  EXPECT_EQ(report.memory_bytes, stats.allocated_bytes);
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
