// Which of the library's memory comes from the process: none in any call on handles of a context with a host's allocator. Without one, or
// in a call without a context, a failing malloc is ST_OUT_OF_MEMORY like any other.
#include <algorithm>
#include <functional>

#include "handle_calls.h"
#include "process_memory.h"

namespace {

using namespace st::test;

/// Allocations that calls may still make outside the host's allocator.
struct Past {
  std::vector<std::string_view> functions;
  int64_t calls;
  size_t largest;
  const char* why;
};

const Past& allowed(const HandleCall& row) {
  constexpr size_t kFolder = 64 << 10;
  static const std::vector<Past> some = {
      {{"st_accumulator_create", "st_clip_norm", "st_communicator_all_gather", "st_communicator_all_reduce", "st_communicator_all_to_all",
        "st_communicator_barrier", "st_communicator_broadcast", "st_communicator_receive", "st_communicator_reduce_scatter",
        "st_communicator_send", "st_data_parallel_gradient_ready", "st_data_parallel_synchronize", "st_gemm_plan_create",
        "st_loss_scaler_create", "st_optimizer_create", "st_plan_create", "st_sharded_optimizer_create", "st_model_write_file",
        "st_trainer_create"},
       2,
       1024,
       "the C library's for a thread"},
      {{"st_checkpoint_create"}, 8, kFolder, "the C library's for a thread, and for an open folder"},
      {{"st_checkpoint_save", "st_trainer_save"}, 8, kFolder, "the C library's for a thread, and for an open folder on it"},
      {{"st_checkpoint_load", "st_checkpoint_list", "st_checkpoint_inspect", "st_checkpoint_verify", "st_checkpoint_hash",
        "st_trainer_save_every", "st_trainer_resume"},
       4,
       kFolder,
       "the C library's for an open folder"},
      {{"st_checkpoint_reshard"}, 8, kFolder, "the C library's for an open folder, and this test's that removes it"},
      {{"st_checkpoint_export"}, 4, kFolder, "the C library's for an open folder, and a FILE"},
      {{"st_model_load"}, 4, kFolder, "the C library's for a thread, and for an open folder"},
      {{"st_communicator_env", "st_communicator_processes"},
       8,
       kFolder,
       "the C library's for a thread, and for the open folder of shared memory"},
      {{"st_communicator_callbacks", "st_trainer_create_in_group"}, 4, 1024, "the C library's for a thread"},
      {{"st_communicator_duplicate", "st_communicator_split"},
       8,
       1024,
       "the C library's for the thread of this test that makes the peer's call"},
      {{"st_communicator_host"}, 16, 4096, "the C library's for a library that is not there"},
      {{"st_model_read_file", "st_trainer_log"}, 1, 1024, "the C library's FILE"},
      {{"st_trainer_log_end"}, 1, 4096, "its buffer"},
      {{"st_machine_calibrate"}, 64, 64 << 10, "the C library's for a thread, and for the text of a thread"},
      {{"st_tensor_to_dlpack", "st_tensor_to_dlpack_on"}, 1000, 4096, "what this test gives it back through is a context of its own"},
  };
  static const Past none = {{}, 0, 0, "all is the host's"};
  const auto found =
      std::ranges::find_if(some, [&](const Past& past) { return std::ranges::count(past.functions, row.local_function()) > 0; });
  return found == some.end() ? none : *found;
}

/// A recipe belongs to no context until a trainer is created from it.
bool is_of_no_context(const HandleCall& row) { return std::string_view(row.function).starts_with("st_recipe"); }

/// A call out of order is refused with a text, which is the process's memory.
void begin_scaled_step(AllKinds& w, std::string_view function) {
  const bool is_unscale = function == "st_loss_scaler_unscale" || function.ends_with("optimizer_step_scaled");
  if (!is_unscale && function != "st_loss_scaler_step" && function != "st_loss_scaler_update") return;
  ASSERT_TRUE(works(st_loss_scaler_scale(w.loss_scaler, &w.real)));
  if (is_unscale) return;
  ASSERT_TRUE(works(st_loss_scaler_unscale(w.loss_scaler, 1, &w.product_view, &w.done)));
  if (function == "st_loss_scaler_step") return;
  ASSERT_TRUE(works(st_loss_scaler_step(w.loss_scaler, &w.done)));
}

void begin_what_it_ends(AllKinds& w, std::string_view function) {
  begin_scaled_step(w, function);
  if (function == "st_accumulator_add" || function == "st_accumulator_set_steps") {
    ASSERT_TRUE(works(st_accumulator_reset(w.accumulator)));
  }
  if (function != "st_trainer_backward" && function != "st_trainer_apply") return;
  ASSERT_TRUE(works(st_trainer_forward(w.run.trainer, 2, w.batch.views(), &w.number, &w.outputs)));
  if (function == "st_trainer_backward") return;
  ASSERT_TRUE(works(st_trainer_backward(w.run.trainer, 0, nullptr)));
}

/// Run it a second time: the first run creates what belongs to the process, tables of names and the processor's identity.
void expect_all_is_the_hosts(const st_context_options& options, const HandleCall& row, int time) {
  AllKinds w(&options);
  begin_what_it_ends(w, row.function);
  largest_malloc();
  const int64_t before = mallocs();
  const st_status status = row.call(w, w.of(row.kind));
  const int64_t calls = mallocs() - before;
  const size_t largest = largest_malloc();
  EXPECT_TRUE(works(status)) << row.function;
  if (time == 0 || is_of_no_context(row)) return;
  const Past& past = allowed(row);
  EXPECT_LE(calls, past.calls) << row.function << "(" << row.argument << "): " << past.why;
  EXPECT_LE(largest, past.largest) << row.function << "(" << row.argument << "): " << past.why;
}

TEST(ProcessMallocs, AreNoneInAnyCallWhereTheHostGivesItsMemory) {
  const auto options = options_past_malloc();
  for (const HandleCall& row : handle_calls())
    for (int time = 0; time < 2; ++time) expect_all_is_the_hosts(options, row, time);
  EXPECT_EQ(bytes_past_malloc(), 0) << "the host's own allocations, after all handles are destroyed";
}

TEST(ProcessMallocs, AreCounted) {
  const int64_t before = mallocs();
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  EXPECT_GT(mallocs(), before) << "this context has no allocator";
}

class ProcessShortage : public testing::TestWithParam<Failing> {
 protected:
  /// As in CreationMemory: with the 0th, 1st, 2nd... malloc failing until none is left to fail.
  static int64_t failures_of(
      const std::function<st_status()>& call, const std::function<void()>& prepare = [] {}) {
    int64_t refusals = 0;
    for (int64_t n = 0;; n = next_to_fail(n)) {
      prepare();
      fail_malloc(n, GetParam());
      const st_status status = call();
      if (!fail_no_malloc()) {
        EXPECT_TRUE(works(status));
        return refusals;
      }
      if (status == ST_OK) continue;
      ++refusals;
      EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, status)) << "malloc " << n;
      EXPECT_TRUE(works(call())) << "the next call, after malloc " << n;
      if (testing::Test::HasFailure()) return refusals;
    }
  }
  template <class Held>
  static int64_t creations(Held& held, const std::function<st_status()>& create) {
    return failures_of(create, [&] { held.reset(); });
  }
};

TEST_P(ProcessShortage, CostsOneCallOnARecipe) {
  HeldRecipe recipe;
  const char* text = nullptr;
  const char* json = R"({"batch": 3, "optimizer": "adamw", "lr": 1e-3, "lr_schedule": "constant", "warmup": 0})";
  EXPECT_GE(creations(recipe, [&] { return st_recipe_create(json, recipe.out()); }), 10);
  EXPECT_GE(failures_of([&] { return st_recipe_set(recipe, "optimizer", "\"adamw\""); }), 3);
  EXPECT_GE(failures_of([&] { return st_recipe_json(recipe, &text); }), 1);
  // Created once for the whole process: if it fails, the next call creates it.
  failures_of([&] { return st_recipe_keys(&text); });
}

TEST_P(ProcessShortage, CostsOneCreationOnAContextWithoutAnAllocator) {
  HeldContext context;
  HeldModel model;
  HeldPredictor predictor;
  EXPECT_GE(creations(context, [&] { return st_context_create(nullptr, context.out()); }), 3);
  EXPECT_GE(creations(model, [&] { return st_model_builtin(context, "mlp", R"({"hidden": [4]})", 1, model.out()); }), 50);
  EXPECT_GE(creations(predictor, [&] { return st_predictor_create(model, nullptr, predictor.out()); }), 5);
}

INSTANTIATE_TEST_SUITE_P(Mallocs, ProcessShortage, testing::Values(Failing::once, Failing::for_good),
                         [](const auto& suite) { return suite.param == Failing::once ? "FailingOnce" : "FailingForGood"; });

}  // namespace
