// Rows that the host makes: requested ahead from a thread of the library. Whatever the callback does, no step is lost or hangs.
#include <atomic>
#include <numeric>
#include <thread>

#include "sine_rows.h"

namespace {

using namespace st::test;

class DataCallback : public testing::Test {
 protected:
  HeldContext context = hold<HeldContext>(st_context_create, nullptr);
  SineFill fill;  // outlives the data
  HeldData data;
};

TEST_F(DataCallback, ThatFailsEndsTheStepThatWantedItsRowsAndIsAskedAgain) {
  fill.before([](int64_t call) { return call == 5 ? ST_TIMEOUT : ST_OK; });  // the second micro-batch of step 3
  ASSERT_TRUE(works(fill.open(context, data.out())));
  SineTrainer run(context, data);
  ASSERT_TRUE(works(run.step()));
  ASSERT_TRUE(works(run.step()));
  const std::string before = run.digest();
  EXPECT_TRUE(fails(ST_CALLBACK, run.step(), {"fill returned 10", "4 rows"}));
  EXPECT_EQ(run.digest(), before);
  ASSERT_TRUE(works(run.step()));
  ASSERT_TRUE(works(run.step()));
  EXPECT_EQ(run.digest(), undisturbed_digest(context, 4));
}

TEST_F(DataCallback, ThatAlwaysFailsNeverGetsAStepThrough) {
  fill.before([](int64_t) { return ST_IO; });
  ASSERT_TRUE(works(fill.open(context, data.out())));
  SineTrainer run(context, data);
  const std::string before = run.digest();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(fails(ST_CALLBACK, run.step(), {"14"}));
  auto report = filled(st_evaluation_init);
  EXPECT_TRUE(fails(ST_CALLBACK, st_trainer_evaluate(run.trainer, data, &report)));
  EXPECT_TRUE(fails(ST_CALLBACK, st_trainer_run(run.trainer, 3, nullptr, nullptr)));
  EXPECT_EQ(run.digest(), before);
}

TEST_F(DataCallback, MayUseTheLibrary) {
  std::atomic<int64_t> worked{0};
  fill.before([&](int64_t) {
    int64_t rows = 0, live = 0;
    HeldData train, validation;
    HeldContext other;
    HeldRecipe recipe;
    const bool fine = st_data_rows(data, &rows) == ST_OK && rows == kSineRows && st_live_handles(nullptr, &live) == ST_OK &&
                      st_data_split(data, 0.5, 1, train.out(), validation.out()) == ST_OK &&
                      st_context_create(nullptr, other.out()) == ST_OK && st_recipe_create(nullptr, recipe.out()) == ST_OK;
    if (!fine) return ST_INTERNAL;
    SineFill plain;
    HeldData made;
    SineTrainer inner(other, (plain.open(other, made.out()), made));
    if (inner.step() != ST_OK) return ST_INTERNAL;
    ++worked;
    return ST_OK;
  });
  ASSERT_TRUE(works(fill.open(context, data.out())));
  SineTrainer run(context, data);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(works(run.step()));
  EXPECT_GE(worked, 6);
  run.trainer.reset();  // also ends the thread that calls back
}

TEST_F(DataCallback, IsBusyWhereItWouldWaitForItself) {
  std::atomic<bool> standing{false}, tried{false};
  std::atomic<st_status> step{ST_OK}, evaluation{ST_OK}, other_step{ST_OK};
  SineTrainer *own = nullptr, *other = nullptr;
  fill.before([&](int64_t) {
    if (!comes_true([&] { return standing.load(); })) return ST_TIMEOUT;
    if (tried) return ST_OK;
    step = own->step();
    other_step = other->step();
    st_evaluation report;
    st_evaluation_init(&report, sizeof report);
    evaluation = st_trainer_evaluate(own->trainer, data, &report);
    tried = true;
    return ST_OK;
  });
  ASSERT_TRUE(works(fill.open(context, data.out())));
  SineTrainer first(context, data), second(context, data);
  own = &first;
  other = &second;
  standing = true;
  ASSERT_TRUE(comes_true([&] { return tried.load(); }));
  EXPECT_EQ(step, ST_BUSY);
  EXPECT_EQ(other_step, ST_BUSY);
  EXPECT_EQ(evaluation, ST_BUSY);
  for (SineTrainer* run : {own, other}) {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(works(run->step()));
    EXPECT_EQ(run->digest(), undisturbed_digest(context, 3)) << "a refused step changes nothing";
    run->trainer.reset();
  }
}

TEST_F(DataCallback, MayDestroyItsOwnTrainer) {
  std::atomic<bool> standing{false};
  std::atomic<int> destroyed{0};
  st_trainer* trainer = nullptr;
  fill.before([&](int64_t) {
    if (!comes_true([&] { return standing.load(); })) return ST_TIMEOUT;
    if (st_trainer_destroy(trainer) == ST_OK) ++destroyed;
    return ST_OK;
  });
  ASSERT_TRUE(works(fill.open(context, data.out())));
  SineTrainer run(context, data);
  trainer = run.trainer;
  *run.trainer.out() = nullptr;  // the callback's from here on
  standing = true;
  EXPECT_TRUE(comes_true([&] { return destroyed == 1; }));
  data.reset();
  EXPECT_TRUE(comes_true([&] { return fill.released() == 1; })) << "the callback's thread ended and released the data";
  EXPECT_EQ(asked<int64_t>(st_live_handles, "trainer"), 0);
}

TEST_F(DataCallback, IsReleasedOnceAfterItsLastUser) {
  {
    ASSERT_TRUE(works(fill.open(context, data.out())));
    HeldData train, validation;
    ASSERT_TRUE(works(st_data_split(data, 0.5, 1, train.out(), validation.out())));
    SineTrainer run(context, data), part(context, train);
    data.reset();
    validation.reset();
    train.reset();
    ASSERT_TRUE(works(run.step()));
    ASSERT_TRUE(works(part.step()));
    EXPECT_EQ(fill.released(), 0);
  }
  EXPECT_EQ(fill.released(), 1);
}

TEST_F(DataCallback, IsRefusedByWhatIsWrongAndThenNotReleased) {
  int released = 0;
  const st_release_fn release = [](void* user) { ++*static_cast<int*>(user); };
  const st_fill_fn nothing = [](void*, int64_t, const int64_t*, int64_t, const st_view*) { return st_status{ST_OK}; };
  const auto open = [&](int64_t rows, int64_t n, const st_field* fields, st_fill_fn with) {
    return st_data_callback(context, rows, n, fields, with, release, &released, data.out());
  };
  const int64_t negative[] = {-1}, huge[] = {INT64_MAX / 2};
  const auto refuses = [&](st_field field, std::initializer_list<std::string_view> words) {
    return fails(ST_INVALID_ARGUMENT, open(4, 1, &field, nothing), words);
  };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(4, 2, kSineFields, nullptr), {"fill is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(0, 2, kSineFields, nothing), {"rows is 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(4, -1, kSineFields, nothing), {"n is -1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(4, 2, nullptr, nothing), {"fields is NULL"}));
  EXPECT_TRUE(refuses({nullptr, ST_F32, 0, nullptr}, {"name is NULL"}));
  EXPECT_TRUE(refuses({"", ST_F32, 0, nullptr}, {"empty name"}));
  EXPECT_TRUE(refuses({"x", 77, 0, nullptr}, {"\"x\"", "77"}));
  EXPECT_TRUE(refuses({"x", ST_F32, 1, nullptr}, {"\"x\"", "no dims"}));
  EXPECT_TRUE(refuses({"x", ST_F32, 1, negative}, {"\"x\"", "[-1]"}));
  EXPECT_TRUE(refuses({"x", ST_U8, 1, huge}, {"\"x\"", "4 rows", "64 bits"}));
  EXPECT_TRUE(refuses({"x", ST_F32, 8, huge}, {"\"x\"", "7 dimensions"}));
  const st_field twice[] = {kSineFields[0], kSineFields[0]};
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, open(4, 2, twice, nothing), {"\"x\"", "twice"}));
  EXPECT_EQ(released, 0);
  const st_field number = {"x", ST_F32, 0, nullptr};
  EXPECT_TRUE(works(open(4, 1, &number, nothing)));
  data.reset();
  EXPECT_EQ(released, 1);
}

}  // namespace
