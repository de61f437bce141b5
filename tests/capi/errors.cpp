// Errors: a status, a helpful message, and the same as data. Per thread.
#include <cstring>
#include <limits>
#include <string_view>
#include <thread>

#include "small_run.h"

namespace {

using namespace st::test;

TEST(Errors, AreEmptyInAThreadThatMadeNone) {
  EXPECT_NE(st_recipe_keys(nullptr), ST_OK);
  std::thread([] {
    EXPECT_STREQ(st_last_error(), "");
    const auto info = last_error();
    EXPECT_EQ(info.status, ST_OK);
  }).join();
  EXPECT_STRNE(st_last_error(), "");
}

TEST(Errors, OfAThreadAreNotAnothers) {
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_require(99, 0), {"99"}));
  std::thread([] { EXPECT_TRUE(fails(ST_UNSUPPORTED, st_require(77, 0), {"77"})); }).join();
  EXPECT_NE(std::strstr(st_last_error(), "99"), nullptr);
}

TEST(Errors, OutliveCallsThatWork) {
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_require(99, 0)));
  const std::string text = text_of(st_version);
  EXPECT_NE(std::strstr(st_last_error(), "99"), nullptr);
}

TEST(Errors, AreThereAsData) {
  st_data* data = nullptr;
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  EXPECT_TRUE(fails(ST_NOT_FOUND, st_data_files(context, "/no/such/text", R"({"context": 4})", &data), {"/no/such/text", "exist"}));
  auto info = filled(st_error_info_init);
  EXPECT_EQ(info.offset, -1);
  EXPECT_TRUE(works(st_last_error_info(&info)));
  EXPECT_EQ(info.status, ST_NOT_FOUND);
  EXPECT_STREQ(info.file, "/no/such/text");
  EXPECT_EQ(info.op, nullptr);
  EXPECT_EQ(info.tensor, nullptr);
  EXPECT_EQ(info.host, nullptr);
  EXPECT_EQ(info.collective, nullptr);
  EXPECT_EQ(info.step, -1);
  EXPECT_EQ(info.rank, -1);
}

TEST(Errors, NameTheOffsetInAFile) {
  st_data* data = nullptr;
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const std::string path = file_of("not_utf8.txt", std::string("abc\xFF"
                                                               "def and more"));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_files(context, path.c_str(), R"({"context": 4})", &data), {"UTF-8", path}));
  const auto info = last_error();
  EXPECT_EQ(info.offset, 3);
  EXPECT_EQ(info.file, path);
}

TEST(Errors, OfAnOpNameIt) {
  SmallRun run;
  TokenBatch batch(6, 1);
  batch.tokens[19] = 256;  // row 2, position 3; the model's vocabulary is 0 to 255
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_step(run.trainer, 2, batch.views(), nullptr), {"embedding", "256"}));
  const auto info = last_error();
  EXPECT_STREQ(info.op, "embedding");
  EXPECT_EQ(info.step, 1);
}

TEST(Errors, OfATensorAndAStepNameThem) {
  SineRun run;
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(works(run.step()));
  const auto info_of = [&](st_status status) {
    EXPECT_NE(status, ST_OK);
    const auto info = last_error();
    return info;
  };
  const auto expect_place = [&](st_status status, std::string_view tensor, int64_t step) {
    const st_error_info info = info_of(status);
    ASSERT_NE(info.tensor, nullptr) << st_last_error();
    EXPECT_EQ(info.tensor, tensor);
    EXPECT_EQ(info.step, step);
  };
  run.x[6] = std::numeric_limits<float>::quiet_NaN();
  expect_place(run.step(), "x", 3);
  run.x[6] = 0;
  run.views[1].view.dtype = ST_I32;
  expect_place(run.step(), "y", 3);
  run.views[1].view.dtype = 99;
  expect_place(run.step(), "y", -1);  // no step begins on views that cannot be read
  run.views[1].view.dtype = ST_F32;
  expect_place(st_trainer_step(run.trainer, 1, run.views, nullptr), "y", 3);
  float room[2] = {};
  const int64_t two[] = {2};
  const st_view view = {ST_F32, 1, two, nullptr, room, sizeof room};
  expect_place(st_model_get(run.model, "second.bias", &view), "second.bias", -1);
  expect_place(st_model_set(run.model, "second.bias", &view), "second.bias", -1);
  expect_place(st_model_set(run.model, "second.bia", &view), "second.bia", -1);
  ASSERT_TRUE(works(run.step()));
  expect_place(st_trainer_gradient(run.trainer, "second.bias", &view), "second.bias", -1);

  st_data* data = nullptr;
  st_predictor* predictor = nullptr;
  const st_named_view short_rows = {"x", view}, unknown = {"z", view};
  expect_place(st_data_arrays(run.context, 8, 1, &short_rows, nullptr, nullptr, &data), "x", -1);
  const st_field twice[] = {{"x", ST_F32, 1, two}, {"x", ST_F32, 1, two}};
  const auto fill = [](void*, int64_t, const int64_t*, int64_t, const st_view*) { return st_status{ST_OK}; };
  expect_place(st_data_callback(run.context, 8, 2, twice, fill, nullptr, nullptr, &data), "x", -1);
  const auto without_y = hold<HeldData>(st_data_callback, run.context, 8, 1, twice, fill, nullptr, nullptr);
  st_trainer* trainer = nullptr;
  expect_place(st_trainer_create(run.model, run.recipe, without_y, &trainer), "x", -1);
  ASSERT_TRUE(works(st_predictor_create(run.model, nullptr, &predictor)));
  expect_place(st_predictor_run(predictor, 1, &unknown, 1, &unknown), "z", -1);
  ASSERT_TRUE(works(st_predictor_destroy(predictor)));
  SineHalf half(run, 0);
  ASSERT_TRUE(works(forward(run.trainer, 2, half.views)));
  expect_place(st_trainer_backward(run.trainer, 1, &unknown), "z", 4);
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_trainer_backward(run.trainer, 0, nullptr), {"no forward pass"})) << "an error undoes the forward";
}

TEST(Errors, OfAMissingInputNameWhoReadsIt) {
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  const auto graph = hold<HeldGraph>(st_graph_create, context);
  sine_graph(graph);
  const int64_t column[] = {ST_BATCH, 1};
  st_value label = 0;
  ASSERT_TRUE(works(st_graph_input(graph, "label", ST_F32, 2, column, &label)));
  ASSERT_TRUE(works(st_graph_output(graph, "metric.label", label)));
  const auto model = hold<HeldModel>(st_model_create, graph, 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4, "warmup": 0})");
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, nullptr);
  SineRun other;
  SineHalf half(other, 0);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_trainer_step(trainer, 1, half.views, nullptr),
                    {"\"y\" is missing from the batch, which has \"x\"", "read by the loss"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, forward(trainer, 1, half.views), {"\"label\" is missing", "read by output \"metric.label\""}));
}

TEST(Library, TellsItsVersionAndFeatures) {
  const char *version = nullptr, *features = nullptr;
  ASSERT_TRUE(works(st_version(&version)));
  ASSERT_TRUE(works(st_features(&features)));
  EXPECT_EQ(std::string(version),
            std::to_string(ST_VERSION_MAJOR) + "." + std::to_string(ST_VERSION_MINOR) + "." + std::to_string(ST_VERSION_PATCH));
  for (const char* word : {"\"version\"", "\"devices\"", "\"reference\"", "\"matmul\"", "\"transpose_a\"", "\"cores\"", "\"memory_bytes\""})
    EXPECT_NE(std::strstr(features, word), nullptr) << word;
}

TEST(Library, ServesItsOwnVersionOnly) {
  EXPECT_TRUE(works(st_require(ST_VERSION_MAJOR, ST_VERSION_MINOR)));
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_require(ST_VERSION_MAJOR, ST_VERSION_MINOR + 1), {"0.2", "0.1.0"}));
  EXPECT_TRUE(fails(ST_UNSUPPORTED, st_require(ST_VERSION_MAJOR + 1, 0)));
}

}  // namespace
