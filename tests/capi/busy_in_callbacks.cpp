// A callback that calls the handle whose call it runs in: that call returns BUSY, and the outer call continues undisturbed; here for a
// context's log and allocator. Permitted actions: allowed_in_callbacks.cpp.
#include <cstdlib>
#include <limits>

#include "small_run.h"

namespace {

using namespace st::test;

/// The checks of a callback, and their number.
struct Inside {
  st_trainer* trainer = nullptr;
  st_model* model = nullptr;
  st_context* context = nullptr;
  bool watched = false;
  int calls = 0;
};

/// Every call of both: handles_in_use.cpp.
void expect_the_trainer_busy(const Inside& inside) {
  const char* text = nullptr;
  EXPECT_TRUE(fails(ST_BUSY, st_trainer_step(inside.trainer, 0, nullptr, nullptr), {"st_trainer_step", "another call"}));
  EXPECT_TRUE(fails(ST_BUSY, st_trainer_get(inside.trainer, "lr", &text), {"st_trainer_get"}));
  EXPECT_TRUE(fails(ST_BUSY, st_trainer_destroy(inside.trainer), {"st_trainer_destroy"}));
}

void expect_the_model_busy(const Inside& inside) {
  const char* text = nullptr;
  EXPECT_TRUE(fails(ST_BUSY, st_model_digest(inside.model, &text), {"st_model_digest"}));
  EXPECT_TRUE(fails(ST_BUSY, st_model_destroy(inside.model), {"st_model_destroy"}));
}

void expect_others_free(const Inside& inside) {
  memory_of(inside.context);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, nullptr);
}

void look(Inside& inside) {
  if (!inside.watched) return;
  ++inside.calls;
  inside.watched = false;  // the calls made here may call back, too
  if (inside.trainer != nullptr) expect_the_trainer_busy(inside);
  if (inside.model != nullptr) expect_the_model_busy(inside);
  expect_others_free(inside);
  inside.watched = true;
}

/// y = sin x on a context whose callbacks make checks.
class BusyInCallbacks : public testing::Test {
 protected:
  void make(const st_context_options& options) {
    ASSERT_TRUE(works(st_context_create(&options, context_.out())));
    ASSERT_TRUE(works(st_graph_create(context_, graph_.out())));
    sine_graph(graph_);
    ASSERT_TRUE(works(st_model_create(graph_, 1, model_.out())));
    ASSERT_TRUE(works(st_recipe_create(R"({"batch": 4, "accumulate": 2, "warmup": 0})", recipe_.out())));
    inside_.context = context_;
    inside_.model = model_;
  }
  static void log(void* user, int32_t, const char*, const char*) { look(*static_cast<Inside*>(user)); }
  /// Checks only at buffers: small allocations also happen before a call has its handles.
  static void* alloc(void* user, size_t bytes, size_t align) {
    if (align >= 64) look(*static_cast<Inside*>(user));
    return std::aligned_alloc(align, (bytes + align - 1) / align * align);
  }
  st_status step(st_step_report* report) {
    const st_named_view views[] = {{"x", {ST_F32, 2, dims_, nullptr, x_.data(), 32}}, {"y", {ST_F32, 2, dims_, nullptr, y_.data(), 32}}};
    return st_trainer_step(trainer_, 2, views, report);
  }

  Inside inside_;
  HeldContext context_;
  HeldGraph graph_;
  HeldModel model_;
  HeldRecipe recipe_;
  HeldTrainer trainer_;
  const int64_t dims_[2] = {8, 1};
  std::vector<float> x_ = std::vector<float>(8, 0.5F), y_ = std::vector<float>(8, 0.25F);
};

TEST_F(BusyInCallbacks, AreTheHandlesOfTheLogsCall) {
  auto options = filled(st_context_options_init);
  options.log = log;
  options.log_user = &inside_;
  make(options);
  inside_.watched = true;
  ASSERT_TRUE(works(st_trainer_create(model_, recipe_, nullptr, trainer_.out())));
  EXPECT_EQ(inside_.calls, 1) << "the plan's record";

  inside_.trainer = trainer_;
  inside_.model = nullptr;  // a step's record is logged while its weights are being written
  auto report = filled(st_step_report_init);
  ASSERT_TRUE(works(step(&report)));
  EXPECT_EQ(inside_.calls, 1) << "a successful step logs nothing";
  x_[3] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(works(step(&report)));
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(inside_.calls, 2) << "the skipped step's record";

  x_[3] = 0.5F;
  ASSERT_TRUE(works(step(&report)));
  EXPECT_EQ(report.skipped, 0);
}

TEST_F(BusyInCallbacks, ATrimLeavesOutATrainerThatIsBeingMade) {
  auto options = filled(st_context_options_init);
  options.log = [](void* user, int32_t, const char*, const char*) {
    auto& inside = *static_cast<Inside*>(user);
    if (!inside.watched) return;
    ++inside.calls;
    EXPECT_TRUE(works(st_context_trim(inside.context)));
  };
  options.log_user = &inside_;
  make(options);
  inside_.watched = true;
  ASSERT_TRUE(works(st_trainer_create(model_, recipe_, nullptr, trainer_.out())));
  EXPECT_EQ(inside_.calls, 1) << "the plan's record, logged before the handle exists";
  ASSERT_TRUE(works(step(nullptr)));
}

TEST_F(BusyInCallbacks, AreTheHandlesOfTheAllocatorsCall) {
  auto options = filled(st_context_options_init);
  options.alloc = alloc;
  options.free = [](void*, void* memory) { std::free(memory); };
  options.memory_user = &inside_;
  make(options);
  inside_.watched = true;
  ASSERT_TRUE(works(st_trainer_create(model_, recipe_, nullptr, trainer_.out())));
  const int created = inside_.calls;
  EXPECT_GE(created, 1);

  inside_.trainer = trainer_;
  const int64_t dims[] = {4, 1};
  const st_named_view views[] = {{"x", {ST_F32, 2, dims, nullptr, x_.data(), 16}}, {"y", {ST_F32, 2, dims, nullptr, y_.data(), 16}}};
  ASSERT_TRUE(works(forward(trainer_, 2, views)));
  EXPECT_GT(inside_.calls, created) << "the first forward makes its buffers";
  inside_.watched = false;
  ASSERT_TRUE(works(st_trainer_backward(trainer_, 0, nullptr)));
}

}  // namespace
