// The host's alloc fails at each of its calls while an object is created: ST_OUT_OF_MEMORY, nothing left behind, and the same call then
// works.
#include <functional>

#include "checkpoint_folder.h"
#include "gemm_case.h"
#include "ledger.h"
#include "small_run.h"

// Replaces the C library's fsync, also for the library: thousands of real ones would take most of the time, and no power is cut here.
extern "C" int fsync(int) { return 0; }

namespace {

using namespace st::test;

int64_t live_handles() { return asked<int64_t>(st_live_handles, nullptr); }

class CreationMemory : public testing::TestWithParam<Failing> {
 protected:
  /// Runs the call with its 0th, 1st, 2nd... allocation failing until none is left to fail, with `prepare` before each; then the same call
  /// must work. Returns how often the call failed. A call may recover from a single failure: std::stable_sort works without a buffer.
  int64_t failures_of(
      const std::function<st_status()>& call, const std::function<void()>& prepare = [] {}) {
    constexpr int64_t kEndless = 100000;
    int64_t refusals = 0;
    for (int64_t n = 0; n < kEndless; n = next_to_fail(n)) {
      prepare();
      const int64_t handles = live_handles();
      ledger_.fail_at(n, GetParam());
      const st_status status = call();
      if (!ledger_.fail_none()) {
        EXPECT_TRUE(works(status));
        return refusals;
      }
      if (GetParam() == Failing::once && status == ST_OK) continue;
      ++refusals;
      EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, status, {"alloc", "NULL"}) || fails(ST_OUT_OF_MEMORY, status, {"checkpoint: out of memory"}))
          << "allocation " << n;
      EXPECT_EQ(live_handles(), handles) << "allocation " << n;
      EXPECT_TRUE(works(call())) << "the next call, after allocation " << n;
      if (testing::Test::HasFailure()) return refusals;
    }
    return kEndless;
  }
  /// For a creation: destroys the previous object first.
  template <class Held>
  int64_t creations(Held& held, const std::function<st_status()>& create) {
    return failures_of(create, [&] { held.reset(); });
  }
  /// For a call on a new graph that has an input `x_` of 8 columns.
  int64_t graph_calls(const std::function<st_status()>& call) {
    return failures_of(call, [&] {
      graph_.reset();
      const int64_t dims[] = {ST_BATCH, 8};
      ASSERT_TRUE(works(st_graph_create(context_, graph_.out())));
      ASSERT_TRUE(works(st_graph_input(graph_, "x", ST_F32, 2, dims, &x_)));
    });
  }
  void SetUp() override { make_context(); }
  void TearDown() override {
    graph_.reset();
    context_.reset();
    EXPECT_EQ(ledger_.bytes(), 0);
  }
  void make_context() {
    const auto options = ledger_.options();
    ASSERT_TRUE(works(st_context_create(&options, context_.out())));
  }

  Ledger ledger_;

  HeldContext context_;
  HeldGraph graph_;
  st_value x_ = 0, made_[4] = {0, 0, 0, 0};
};

TEST_P(CreationMemory, OfAContext) {
  const auto options = ledger_.options();
  HeldContext context;
  EXPECT_GE(creations(context, [&] { return st_context_create(&options, context.out()); }), 3);
}

TEST_P(CreationMemory, OfAGraph) {
  EXPECT_GE(creations(graph_, [&] { return st_graph_create(context_, graph_.out()); }), 1);
}

TEST_P(CreationMemory, OfAGraphsLeaves) {
  const int64_t dims[] = {8, 3};
  std::vector<float> values(24, 0.5F);
  const st_view view = {ST_F32, 2, dims, nullptr, values.data(), 96};
  EXPECT_GE(graph_calls([&] { return st_graph_input(graph_, "y", ST_F32, 2, dims, made_); }), 3);
  EXPECT_GE(graph_calls([&] { return st_graph_parameter(graph_, "a.long.name.of.a.weight", 2, dims, ST_INIT_XAVIER, 1, made_); }), 3);
  EXPECT_GE(graph_calls([&] { return st_graph_parameter_values(graph_, "a.long.name.of.a.weight", &view, 1, made_); }), 3);
}

TEST_P(CreationMemory, OfAGraphsOps) {
  const int64_t axes[] = {1};
  const st_attribute attribute = {"axes", ST_ATTRIBUTE_INTS, 1, 0, 0, axes, nullptr};
  const st_attribute word = {"approximate", ST_ATTRIBUTE_WORD, 0, 0, 0, nullptr, "tanh"};
  EXPECT_GE(graph_calls([&] { return st_graph_op(graph_, "sum", 1, &x_, R"({"axes": [1], "keep_dims": true})", 1, made_); }), 5);
  EXPECT_GE(graph_calls([&] { return st_graph_op(graph_, "gelu", 1, &x_, R"({"approximate": "erf"})", 1, made_); }), 5);
  EXPECT_GE(graph_calls([&] { return st_graph_op(graph_, "dropout", 1, &x_, R"({"rate": 0.5})", 1, made_); }), 5);
  EXPECT_GE(graph_calls([&] { return st_graph_apply(graph_, "sum", 1, &x_, 1, &attribute, 1, made_); }), 5);
  EXPECT_GE(graph_calls([&] { return st_graph_apply(graph_, "gelu", 1, &x_, 1, &word, 1, made_); }), 5);
}

TEST_P(CreationMemory, OfAGraphsScopesAndOutputs) {
  EXPECT_GE(graph_calls([&] { return st_graph_scope(graph_, "a.scope.with.a.long.name"); }), 2);
  EXPECT_GE(graph_calls([&] { return st_graph_output(graph_, "an.output.with.a.long.name", x_); }), 2);
  const char* text = nullptr;
  EXPECT_GE(graph_calls([&] { return st_graph_text(graph_, &text); }), 2);
}

TEST_P(CreationMemory, OfLayers) {
  EXPECT_GE(graph_calls([&] { return st_layer_linear(graph_, "first", x_, R"({"outputs": 3})", made_); }), 10);
  EXPECT_GE(graph_calls([&] { return st_layer_norm(graph_, "norm", x_, R"({"kind": "rms"})", made_); }), 10);
  EXPECT_GE(graph_calls([&] { return st_layer_mlp(graph_, "mlp", x_, R"({"hidden": [4], "outputs": 2})", made_); }), 10);
  EXPECT_GE(graph_calls([&] { return st_layer_dropout(graph_, "drop", x_, R"({"rate": 0.5})", made_); }), 5);
}

TEST_P(CreationMemory, OfHostOps) {
  auto callbacks = filled(st_op_callbacks_init);
  callbacks.shape = [](void*, int32_t, const st_op_type* inputs, int32_t, st_op_type* outputs) {
    outputs[0] = inputs[0];
    return st_status{ST_OK};
  };
  callbacks.forward = [](void*, int32_t, const st_view*, int32_t, const st_view*) { return st_status{ST_OK}; };
  EXPECT_GE(failures_of([&] { return st_op_register(context_, "an_op_of_the_hosts_with_a_long_name", &callbacks, nullptr); },
                        [&] {
                          context_.reset();
                          make_context();
                        }),
            1);
  EXPECT_GE(graph_calls([&] { return st_graph_op(graph_, "an_op_of_the_hosts_with_a_long_name", 1, &x_, nullptr, 1, made_); }), 5);
}

TEST_P(CreationMemory, OfModels) {
  HeldModel model, built, clone;
  ASSERT_TRUE(works(st_graph_create(context_, graph_.out())));
  sine_graph(graph_);
  EXPECT_GE(creations(model, [&] { return st_model_create(graph_, 1, model.out()); }), 10);
  EXPECT_GE(creations(clone, [&] { return st_model_clone(model, clone.out()); }), 3);
  const char* gpt = R"({"layers": 1, "width": 8, "heads": 1, "context": 4})";
  EXPECT_GE(creations(built, [&] { return st_model_builtin(context_, "gpt", gpt, 1, built.out()); }), 20);
  EXPECT_GE(creations(built, [&] { return st_model_builtin(context_, "mlp", R"({"hidden": [4, 2]})", 1, built.out()); }), 20);
}

TEST_P(CreationMemory, OfData) {
  HeldData files, arrays, callback, train, validation;
  const std::string path = text_file("creation_memory.txt", 600);
  const int64_t dims[] = {16, 1};
  std::vector<float> values(16, 0.5F);
  const st_named_view view = {"x", {ST_F32, 2, dims, nullptr, values.data(), 64}};
  const st_field field = {"x", ST_F32, 1, dims + 1};
  const auto fill = [](void*, int64_t, const int64_t*, int64_t, const st_view*) { return st_status{ST_OK}; };
  EXPECT_GE(creations(files, [&] { return st_data_files(context_, path.c_str(), R"({"context": 8})", files.out()); }), 5);
  EXPECT_GE(creations(arrays, [&] { return st_data_arrays(context_, 16, 1, &view, nullptr, nullptr, arrays.out()); }), 3);
  EXPECT_GE(creations(callback, [&] { return st_data_callback(context_, 16, 1, &field, fill, nullptr, nullptr, callback.out()); }), 3);
  EXPECT_GE(failures_of([&] { return st_data_split(files, 0.5, 1, train.out(), validation.out()); },
                        [&] {
                          train.reset();
                          validation.reset();
                        }),
            2);
}

TEST_P(CreationMemory, OfTrainersAndPredictors) {
  const int64_t dims[] = {16, 1};
  std::vector<float> values(16, 0.5F);
  const st_view column = {ST_F32, 2, dims, nullptr, values.data(), 64};
  const st_named_view views[] = {{"x", column}, {"y", column}};
  HeldTrainer trainer;
  HeldPredictor predictor;
  // A small model: each of its thousands of allocations needs a creation.
  const auto model = hold<HeldModel>(st_model_builtin, context_, "mlp", R"({"inputs": 1, "hidden": [1], "outputs": 1})", 1);
  auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 2, "accumulate": 2, "warmup": 0, "dropout": 0.1})");
  const auto data = hold<HeldData>(st_data_arrays, context_, 16, 2, views, nullptr, nullptr);
  EXPECT_GE(creations(trainer, [&] { return st_trainer_create(model, recipe, data, trainer.out()); }), 20);
  EXPECT_GE(creations(predictor, [&] { return st_predictor_create(model, nullptr, predictor.out()); }),
            5);  // more if control groups have to be asked for a limit
  EXPECT_TRUE(works(st_trainer_step(trainer, 0, nullptr, nullptr)));
  trainer.reset();
  const std::string in_file = R"({"batch": 2, "warmup": 0, "offload": "optimizer", "offload_folder": ")" + testing::TempDir() + "\"}";
  ASSERT_TRUE(works(st_recipe_create(in_file.c_str(), recipe.out())));
  EXPECT_GE(creations(trainer, [&] { return st_trainer_create(model, recipe, data, trainer.out()); }), 20);
  EXPECT_TRUE(works(st_trainer_step(trainer, 0, nullptr, nullptr)));
}

TEST_P(CreationMemory, OfAFileThatIsWrittenMeanwhile) {
  HeldPending pending;
  const std::string path = file_of("creation_memory.safetensors", "");
  const auto model = hold<HeldModel>(st_model_builtin, context_, "mlp", R"({"hidden": [4]})", 1);
  EXPECT_GE(creations(pending,
                      [&] {
                        const st_status begun = st_model_write_file(model, path.c_str(), pending.out());
                        if (begun != ST_OK) return begun;
                        const st_status done = st_pending_wait(pending, -1);
                        if (done != ST_OK) pending.reset();
                        return done;
                      }),
            10);
}

/// The checkpoint reports errors of what the manager does after the save is on disk.
st_status whole_save(st_checkpoint* checkpoint, const st_named_view& view) {
  HeldPending pending;
  st_status status = st_checkpoint_save(checkpoint, 1, 1, &view, R"({"a": 1})", pending.out());
  if (status == ST_OK) status = st_pending_wait(pending, -1);
  pending.reset();
  const st_status behind = st_checkpoint_wait(checkpoint, -1);
  return status == ST_OK ? behind : status;
}

TEST_P(CreationMemory, OfCheckpoints) {
  const CheckpointFolder folder;
  HeldCheckpoint checkpoint;
  const int64_t dims[] = {4, 4}, columns[] = {1, 4};
  float values[16] = {1, 2};
  const st_named_view view = {"values", {ST_F32, 2, dims, columns, values, sizeof values}};
  EXPECT_GE(creations(checkpoint, [&] { return st_checkpoint_create(context_, folder.c_str(), nullptr, checkpoint.out()); }), 5);
  EXPECT_GE(failures_of([&] { return whole_save(checkpoint, view); }), 15);
  EXPECT_GE(failures_of([&] { return st_checkpoint_load(checkpoint, nullptr, 1, &view, nullptr, nullptr); }), 20);
  const char* json = nullptr;
  EXPECT_GE(failures_of([&] { return st_checkpoint_list(checkpoint, &json); }), 10);
}

/// Creates a group of two, exchanges, and destroys it. If one rank has no memory, the other gets its error; the first rank's counts.
st_status whole_exchange(st_context* context) {
  st_communicator* made[2] = {};
  if (const st_status status = st_communicator_local(context, 2, nullptr, made); status != ST_OK) return status;
  HeldCommunicator ranks[2];
  HeldPending pending;
  std::vector<float> values(2000);
  const int64_t count = 1000;
  const st_view mine = {ST_F32, 1, &count, nullptr, values.data(), 4000}, theirs = {ST_F32, 1, &count, nullptr, &values[1000], 4000};
  for (int rank = 0; rank < 2; ++rank) *ranks[rank].out() = made[rank];
  const st_status begun = st_communicator_all_reduce(ranks[0], "gradients", &mine, ST_REDUCE_SUM, pending.out());
  if (begun != ST_OK) return begun;
  const st_status blocking = st_communicator_all_reduce(ranks[1], "gradients", &theirs, ST_REDUCE_SUM, nullptr);
  if (blocking == ST_OUT_OF_MEMORY) return blocking;
  return st_pending_wait(pending, -1);
}

TEST_P(CreationMemory, OfCommunicatorsAndTheirCalls) {
  EXPECT_GE(failures_of([&] { return whole_exchange(context_); }), 10);
}

TEST_P(CreationMemory, OfWhatHostsOnRanksTrainWith) {
  HeldDataParallel parallel;
  HeldShardedOptimizer sharded;
  const int64_t dims[] = {1500};
  std::vector<float> w(1500), g(1500, 1.0F);
  std::vector<uint16_t> half(1500);
  const st_view gradient = {ST_F32, 1, dims, nullptr, g.data(), 6000}, copy = {ST_BF16, 1, dims, nullptr, half.data(), 3000};
  const st_named_view weight = {"w", {ST_F32, 1, dims, nullptr, w.data(), 6000}}, same = {"g", gradient};
  auto options = filled(st_sharded_optimizer_options_init);
  options.stage = 2;
  options.bucket_bytes = 1;  // each gradient is exchanged at once
  const auto alone = hold<HeldCommunicator>(st_communicator_local, context_, 1, nullptr);
  EXPECT_GE(creations(parallel, [&] { return st_data_parallel_create(alone, 1, &same, nullptr, parallel.out()); }), 5);
  EXPECT_GE(failures_of([&] {
              const st_status ready = st_data_parallel_gradient_ready(parallel, 0);
              // Even if there is no memory for its exchange, the gradient counts as ready.
              return ready == ST_OK || ready == ST_WRONG_STATE ? st_data_parallel_synchronize(parallel) : ready;
            }),
            1);
  EXPECT_GE(creations(sharded, [&] { return st_sharded_optimizer_create(alone, nullptr, 1, &weight, &options, sharded.out()); }), 20);
  EXPECT_GE(failures_of([&] {
              const st_status ready = st_sharded_optimizer_gradient_ready(sharded, 0, &gradient);
              return ready == ST_OK ? st_sharded_optimizer_step(sharded, 0, nullptr, nullptr) : ready;
            }),
            1);
  EXPECT_GE(failures_of([&] { return st_sharded_optimizer_keep_copies(sharded, 1, &copy); },
                        [&] { EXPECT_TRUE(works(st_sharded_optimizer_keep_copies(sharded, 0, nullptr))); }),
            10);
  int64_t n = 0;
  const st_named_view* state = nullptr;
  EXPECT_GE(failures_of([&] { return st_sharded_optimizer_gather_state(sharded, 0, &n, &state); }), 3);
  EXPECT_GE(failures_of([&] { return st_sharded_optimizer_load_state(sharded, n, state); },
                        [&] { EXPECT_TRUE(works(st_sharded_optimizer_gather_state(sharded, 0, &n, &state))); }),
            1);
}

TEST_P(CreationMemory, OfProducts) {
  HeldGemm gemm;
  HeldPacked packed;
  GemmCase x({40, 50, 60});
  const st_view b = x.b.view();
  EXPECT_GE(creations(gemm, [&] { return st_gemm_plan_create(context_, &x.problem, nullptr, gemm.out()); }), 3);
  EXPECT_GE(creations(packed, [&] { return st_gemm_pack(gemm, &b, packed.out()); }), 1);
}

TEST_P(CreationMemory, OfTensors) {
  HeldTensor tensor, wrapped;
  const int64_t dims[] = {4, 4};
  float values[16] = {};
  const st_view view = {ST_F32, 2, dims, nullptr, values, sizeof values};
  EXPECT_GE(creations(tensor, [&] { return st_tensor_create(context_, ST_F32, 2, dims, tensor.out()); }), 1);
  EXPECT_GE(creations(wrapped, [&] { return st_tensor_wrap(context_, &view, nullptr, nullptr, wrapped.out()); }), 1);
}

INSTANTIATE_TEST_SUITE_P(Allocations, CreationMemory, testing::Values(Failing::once, Failing::for_good),
                         [](const auto& suite) { return suite.param == Failing::once ? "FailingOnce" : "FailingForGood"; });

}  // namespace
