// Host arrays as data: read in place, released once, and trained on like the same rows from any other source.
#include <algorithm>
#include <numeric>
#include <set>

#include "sine_rows.h"

namespace {

using namespace st::test;

class DataArrays : public testing::Test {
 protected:
  /// Opens one array "x", valid except for what `change` does to it.
  st_status open(const std::function<void(st_named_view&)>& change) {
    st_named_view view = {"x", {ST_F32, 2, rows.dims, nullptr, rows.x.data(), kSineRows * 4}};
    change(view);
    return st_data_arrays(context, kSineRows, 1, &view, count_release, &released, data.out());
  }
  static void count_release(void* user) { ++*static_cast<int*>(user); }

  SineRows rows;
  HeldContext context = hold<HeldContext>(st_context_create, nullptr);
  HeldData data;
  int released = 0;
};

TEST_F(DataArrays, TrainToTheSameBitsAsACallbackAndAsBorrowedBatches) {
  constexpr int64_t kSteps = 7, kRowsAStep = 8;
  ASSERT_TRUE(works(st_data_arrays(context, kSineRows, 2, rows.views, nullptr, nullptr, data.out())));
  SineTrainer arrays(context, data);
  SineFill fill;
  HeldData made;
  ASSERT_TRUE(works(fill.open(context, made.out())));
  SineTrainer callback(context, made);
  SineTrainer borrowed(context, nullptr);
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(works(arrays.step()));
    ASSERT_TRUE(works(callback.step()));
  }
  const auto ids = fill.asked();
  ASSERT_GE(static_cast<int64_t>(ids.size()), kSteps * kRowsAStep);
  for (int64_t step = 0; step < kSteps; ++step) {
    float x[kRowsAStep], y[kRowsAStep];
    for (int64_t i = 0; i < kRowsAStep; ++i) {
      const auto id = static_cast<size_t>(ids[static_cast<size_t>(step * kRowsAStep + i)]);
      x[i] = rows.x[id];
      y[i] = rows.y[id];
    }
    const int64_t dims[] = {kRowsAStep, 1};
    const st_named_view batch[] = {{"x", {ST_F32, 2, dims, nullptr, x, sizeof x}}, {"y", {ST_F32, 2, dims, nullptr, y, sizeof y}}};
    ASSERT_TRUE(works(borrowed.step(2, batch)));
  }
  EXPECT_EQ(arrays.digest(), callback.digest());
  EXPECT_EQ(arrays.digest(), borrowed.digest());
  EXPECT_NE(arrays.digest(), SineTrainer(context, nullptr).digest()) << "nothing was learned";
  // Each epoch of the stream is a permutation.
  for (int64_t epoch = 0; epoch < 5; ++epoch)
    EXPECT_EQ(std::set(ids.begin() + epoch * kSineRows, ids.begin() + (epoch + 1) * kSineRows).size(), static_cast<size_t>(kSineRows));
}

TEST_F(DataArrays, AreReleasedOnceWhenNothingUsesThemAnyMore) {
  ASSERT_TRUE(works(st_data_arrays(context, kSineRows, 2, rows.views, count_release, &released, data.out())));
  {
    HeldData train, validation;
    ASSERT_TRUE(works(st_data_split(data, 0.3, 1, train.out(), validation.out())));
    SineTrainer run(context, train);
    ASSERT_TRUE(works(run.created));
    data.reset();
    train.reset();
    context.reset();
    ASSERT_TRUE(works(run.step()));
    validation.reset();
    EXPECT_EQ(released, 0) << "the trainer still draws from them";
  }
  EXPECT_EQ(released, 1);
}

// More views of no memory: wrong_views.cpp.
TEST_F(DataArrays, ThatAreRefusedAreNotReleased) {
  int64_t empty_first[] = {0, 1};
  const auto refuses = [&](const std::function<void(st_named_view&)>& change, std::initializer_list<std::string_view> words) {
    return fails(ST_INVALID_ARGUMENT, open(change), words);
  };
  EXPECT_TRUE(refuses([](auto& v) { v.name = nullptr; }, {"st_data_arrays", "NULL"}));
  EXPECT_TRUE(refuses([](auto& v) { v.name = ""; }, {"empty name"}));
  EXPECT_TRUE(refuses([](auto& v) { v.view.rank = 0; }, {"\"x\"", "10 rows"}));
  EXPECT_TRUE(refuses([&](auto& v) { v.view.dims = empty_first; }, {"[0, 1]", "10 rows"}));
  EXPECT_TRUE(refuses([](auto& v) { v.view.bytes = 39; }, {"needs 40 bytes", "39"}));
  EXPECT_TRUE(fails(ST_UNSUPPORTED, open([](auto& v) { v.view.rank = 9; }), {"9 dimensions", "8"}));
  const st_named_view twice[] = {rows.views[0], rows.views[0]};
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_data_arrays(context, kSineRows, 2, twice, count_release, &released, data.out()), {"\"x\"", "twice"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_arrays(context, 0, 1, rows.views, count_release, &released, data.out()), {"rows is 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_arrays(context, 5, 0, rows.views, count_release, &released, data.out()), {"n is 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_arrays(context, 5, 1, nullptr, count_release, &released, data.out()), {"arrays is NULL"}));
  EXPECT_EQ(released, 0);
}

TEST_F(DataArrays, AreTakenWithoutGapsOnly) {
  const int64_t square[] = {kSineRows, 2}, transposed[] = {1, kSineRows}, plain[] = {2, 1}, any_for_one[] = {1, 77};
  std::vector<float> table(kSineRows * 2);
  const auto strided = [&](const int64_t* strides) {
    return open([&](auto& v) { v.view = {ST_F32, 2, square, strides, table.data(), kSineRows * 8}; });
  };
  EXPECT_TRUE(fails(ST_UNSUPPORTED, strided(transposed), {"\"x\"", "strides", "copy"}));
  EXPECT_TRUE(works(strided(plain)));
  data.reset();
  EXPECT_TRUE(works(open([&](auto& v) { v.view.strides = any_for_one; }))) << "a stride over one element is never used";
}

TEST_F(DataArrays, ThatDoNotFitTheModelAreNamedWhenTheTrainerIsMade) {
  const auto refused = [&](int64_t n, const st_named_view* views, std::initializer_list<std::string_view> words) {
    const auto made = hold<HeldData>(st_data_arrays, context, kSineRows, n, views, nullptr, nullptr);
    SineTrainer run(context, made);
    return fails(ST_INVALID_ARGUMENT, run.created, words);
  };
  EXPECT_TRUE(refused(1, rows.views, {"input \"y\"", "\"x\""}));
  st_named_view views[] = {rows.views[0], rows.views[1], rows.views[1]};
  views[1].view.dtype = ST_I32;
  EXPECT_TRUE(refused(2, views, {"input \"y\" is f32", "i32"}));
  const int64_t flat[] = {kSineRows};
  views[1] = {"y", {ST_F32, 1, flat, nullptr, rows.y.data(), kSineRows * 4}};
  EXPECT_TRUE(refused(2, views, {"input \"y\"", "[4, 1]", "[4]"}));

  views[1] = rows.views[1];
  double weights[kSineRows] = {};
  views[2] = {"weight", {ST_F64, 1, flat, nullptr, weights, sizeof weights}};
  const auto more = hold<HeldData>(st_data_arrays, context, kSineRows, 3, views, nullptr, nullptr);
  SineTrainer run(context, more);
  ASSERT_TRUE(works(run.created)) << "arrays without an input are ignored";
  EXPECT_TRUE(works(run.step()));
}

TEST_F(DataArrays, HaveNoTokens) {
  const auto text = hold<HeldData>(st_data_files, context, text_file("arrays.txt", 100).c_str(), R"({"context": 4})");
  ASSERT_TRUE(works(st_data_arrays(context, kSineRows, 2, rows.views, nullptr, nullptr, data.out())));
  int64_t count = 0;
  double loss = 0;
  EXPECT_TRUE(works(st_data_rows(data, &count)));
  EXPECT_EQ(count, kSineRows);
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_data_vocabulary(data, &count), {"st_data_vocabulary", "not from files"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_data_bigram_loss(data, text, &loss), {"st_data_bigram_loss"}));
  EXPECT_TRUE(fails(ST_WRONG_STATE, st_data_bigram_loss(text, data, &loss), {"st_data_bigram_loss"}));
}

// Every row on one side, by the seed alone: tests/unit/data/subset_test.cpp.
TEST_F(DataArrays, AreSplitByFractionAndSeed) {
  SineFill fill;
  HeldData whole;
  ASSERT_TRUE(works(fill.open(context, whole.out())));
  const auto validation_rows = [&](int64_t seed) {
    HeldData train, validation;
    EXPECT_TRUE(works(st_data_split(whole, 0.3, seed, train.out(), validation.out())));
    EXPECT_EQ(asked<int64_t>(st_data_rows, train), 7);
    const SineTrainer run(context, nullptr);
    const size_t before = fill.asked().size();
    filled(st_evaluation_init, st_trainer_evaluate, run.trainer, validation);
    const auto all = fill.asked();
    return std::vector(all.begin() + static_cast<int64_t>(before), all.end());
  };
  const auto first = validation_rows(1);
  EXPECT_EQ(first.size(), 3U);
  EXPECT_EQ(validation_rows(1), first);
  EXPECT_NE(validation_rows(2), first);
  HeldData train, validation;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_split(whole, 1, 0, train.out(), validation.out()), {"fraction is 1"}));
}

}  // namespace
