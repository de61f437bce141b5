// An exception of a host callback never unwinds through C: the caller gets it unchanged, and the library stays usable.
#include <filesystem>
#include <fstream>

#include "sine_objects.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::test;

Data callback_data(const Context& context, const FillFunction& fill) {
  return Data::callback(context, 16, {{"x", DType::f32, {1}}, {"y", DType::f32, {1}}}, fill);
}

void fill_with_ones(const std::vector<View>& views) {
  for (const View& view : views) std::fill_n(view.as<float>(), view.size(), 1.0F);
}

TEST_F(Hpp, AnExceptionOfOnStepEndsTheRunAndArrives) {
  Sine sine;
  const Data data = callback_data(sine.context, [](const int64_t*, int64_t, const std::vector<View>& views) { fill_with_ones(views); });
  const Trainer trainer(sine.model, sine.recipe, data);
  int calls = 0;
  EXPECT_EQ(thrown_number([&] {
              trainer.run(10, [&](const StepReport& report) -> bool {
                ++calls;
                throw Mine{static_cast<int>(report.step)};
              });
            }),
            1);
  EXPECT_EQ(calls, 1);
  trainer.run(10, [&](const StepReport& report) { return report.step < 4; });  // false ends the run without an error
  EXPECT_EQ(trainer.step().step, 5);
  trainer.run(7);
  EXPECT_EQ(trainer.step().step, 8);
  EXPECT_GT(trainer.evaluate(data).count, 0);
}

TEST_F(Hpp, AnExceptionOfFillArrivesAtTheStepThatWantedTheRows) {
  Sine sine;
  std::atomic<bool> fails{true};
  const Data data = callback_data(sine.context, [&](const int64_t*, int64_t, const std::vector<View>& views) {
    if (fails) throw Mine{7};
    fill_with_ones(views);
  });
  const Trainer trainer(sine.model, sine.recipe, data);
  EXPECT_EQ(thrown_number([&] { trainer.step(); }), 7);
  fails = false;
  // Prefetched rows may have failed too; then the same rows are requested again.
  for (int tries = 0; tries < 4 && thrown_number([&] { trainer.step(); }) == 7; ++tries) {
  }
  EXPECT_GE(trainer.step().step, 2);
}

TEST_F(Hpp, FillGoesWhenTheDataAndWhatUsesItIsGone) {
  const auto token = std::make_shared<int>(1);
  {
    Sine sine;
    Data data = callback_data(sine.context, [token](const int64_t*, int64_t, const std::vector<View>& views) { fill_with_ones(views); });
    const Trainer trainer(sine.model, sine.recipe, data);
    const auto parts = data.split(0.25, 1);
    EXPECT_EQ(parts.first.rows() + parts.second.rows(), 16);
    data.close();
    EXPECT_EQ(trainer.step().step, 1);
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(Hpp, ArraysAreReleasedOnceAndNotWhenTheyWereRefused) {
  Sine sine;
  int released = 0;
  const auto release = [&] { ++released; };
  EXPECT_EQ(thrown_status([&] { Data::arrays(sine.context, 9, sine.batch, release); }), Status::invalid_argument);
  EXPECT_EQ(released, 0);
  {
    Data data = Data::arrays(sine.context, 8, sine.batch, release);
    const Trainer trainer(sine.model, sine.recipe, data);
    EXPECT_EQ(data.rows(), 8);
    EXPECT_EQ(thrown_status([&] { data.vocabulary(); }), Status::wrong_state);
    data.close();
    EXPECT_EQ(trainer.step().step, 1);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  Data::arrays(sine.context, 8, sine.batch, [&] {
    ++released;
    throw Mine{1};  // no call is left that could throw it
  });
  EXPECT_EQ(released, 2);
}

TEST_F(Hpp, AnExceptionOfOnTokenArrivesAndFalseEndsTheText) {
  const Context context;
  const Model model(context, "gpt", R"({"layers": 1, "width": 16, "heads": 2, "context": 8})", 1);
  const Predictor predictor(model);
  GenerateOptions options;
  options.tokens = 5;
  EXPECT_EQ(predictor.generate({1, 2}, options).size(), 5U);
  EXPECT_EQ(thrown_number([&] { predictor.generate({1, 2}, options, [](int32_t) -> bool { throw Mine{3}; }); }), 3);
  int tokens = 0;
  predictor.generate({1, 2}, options, [&](int32_t) { return ++tokens < 2; });
  EXPECT_EQ(tokens, 2);
}

TEST_F(Hpp, AContextsLoggerHearsOfItAndItsExceptionArrives) {
  ContextOptions options = Sine::one_thread();
  std::vector<std::string> areas;
  bool throws = false;
  options.log = [&](LogLevel level, const std::string& area, const std::string& text) {
    EXPECT_LE(level, LogLevel::debug);
    EXPECT_FALSE(text.empty());
    areas.push_back(area);
    if (throws) throw Mine{9};
  };
  const Sine sine(options);
  EXPECT_NE(std::find(areas.begin(), areas.end(), "trainer"), areas.end());
  const size_t before = areas.size();
  throws = true;
  EXPECT_EQ(thrown_number([&] { const Trainer trainer(sine.model, sine.recipe); }), 9);
  EXPECT_GT(areas.size(), before);
}

TEST_F(Hpp, AnExceptionOfTheLoggerArrivesAfterTheCallAndOnce) {
  detail::Host host;
  host.log = [](int32_t, const char*, const char*) { throw Mine{4}; };
  detail::log_record(&host, ST_LOG_INFO, "area", "text");
  EXPECT_EQ(thrown_number([&] { detail::conclude(ST_OK, &host, nullptr); }), 4);
  EXPECT_NO_THROW(detail::conclude(ST_OK, &host, nullptr));
}

TEST_F(Hpp, AParallelForThatThrowsHalfwayStillRunsEveryTaskOnce) {
  detail::Host host;
  host.parallel = [](int64_t n, const std::function<void(int64_t)>& task) {
    for (int64_t i = n; i-- > n / 2;) task(i);
    throw Mine{5};
  };
  std::vector<int> runs(9);
  detail::parallel_for(
      &host, 9, [](void* arg, int64_t i) { ++(*static_cast<std::vector<int>*>(arg))[static_cast<size_t>(i)]; }, &runs);
  EXPECT_EQ(runs, std::vector<int>(9, 1));
  EXPECT_EQ(thrown_number([&] { detail::conclude(ST_OK, &host, nullptr); }), 5);
}

TEST_F(Hpp, FilesAreReadWrittenAndLogged) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "scaletrain_hpp";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "text.txt") << std::string(2000, 'a');
  Sine sine;
  const Data text = Data::files(sine.context, (folder / "text.txt").string(), R"({"context": 8})");
  EXPECT_EQ(text.vocabulary(), 256);
  const auto parts = text.split(0.2, 1);
  EXPECT_LT(parts.first.bigram_loss(parts.second), 0.1) << "one letter is easily foretold";
  sine.trainer.log((folder / "log.jsonl").string());
  sine.trainer.step(sine.batch);
  sine.trainer.log_end(0.5);
  sine.trainer.write_report((folder / "report.html").string(), R"({"title": "sine"})");
  sine.model.write_file((folder / "w.safetensors").string());
  sine.model.read_file((folder / "w.safetensors").string());
  EXPECT_EQ(thrown_status([&] { sine.model.read_file((folder / "none").string()); }), Status::not_found);
  const Pending later = sine.model.write_file_async((folder / "later.safetensors").string());
  later.wait();
  EXPECT_TRUE(later.wait(std::chrono::milliseconds(0)));
  EXPECT_TRUE(later.is_done());
  sine.model.read_file((folder / "later.safetensors").string());
  const Pending never = sine.model.write_file_async((folder / "none" / "w.safetensors").string());
  for (int time = 0; time < 2; ++time) EXPECT_EQ(thrown_status([&] { never.wait(); }), Status::not_found);
  sine.trainer.cancel();  // nothing is running: the next call is cancelled
  EXPECT_EQ(thrown_status([&] { sine.trainer.step(sine.batch); }), Status::cancelled);
  sine.trainer.stop();
  EXPECT_EQ(sine.trainer.step(sine.batch).step, 2);
}

}  // namespace
