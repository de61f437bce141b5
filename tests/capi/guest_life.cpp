#include "guest_life.h"

#include "handle_calls.h"
#include "lending_host.h"

namespace st::test {
namespace {

#define CALL(expression) call(#expression, expression)

class Life {
 public:
  explicit Life(const LifeWatch& watch) : watch_(watch), host_(watch), options_(filled(st_context_options_init)) {
    options_.threads = 2;
    options_.log = LendingHost::log;
    options_.parallel = LendingHost::parallel;
    options_.alloc = LendingHost::alloc;
    options_.free = LendingHost::free;
    options_.log_user = options_.parallel_user = options_.memory_user = &host_;
  }
  void live() {
    call_without_handles();
    call_with_each_handle();
    lend_to_a_training();
    lend_arrays();
    lend_to_a_text();
  }

 private:
  void call(const char* name, st_status status) {
    watch_.after(name);
    EXPECT_TRUE(works(status)) << name;
  }
  /// The same for calls that fail.
  void refused(const char* name, st_status status) {
    watch_.after(name);
    EXPECT_NE(status, ST_OK) << name;
  }
  void call_without_handles();
  void call_with_each_handle();
  void lend_to_a_training();
  void lend_arrays();
  void lend_to_a_text();

  const LifeWatch& watch_;
  LendingHost host_;
  st_context_options options_;
};

void Life::call_without_handles() {
  const char* answer = nullptr;
  int64_t number = 0;
  HeldContext context;
  HeldRecipe recipe;
  HeldSchedule schedule;
  HeldSampler sampler;
  auto info = filled(st_error_info_init);
  CALL(st_require(0, 1));
  CALL(st_version(&answer));
  CALL(st_features(&answer));
  CALL(st_recipe_keys(&answer));
  CALL(st_memory_role_name(ST_MEMORY_STASH, &answer));
  CALL(st_live_handles(nullptr, &number));
  CALL(st_recipe_create(R"({"batch": 3, "warmup": 3, "lr": 0.001})", recipe.out()));
  CALL(st_schedule_create(R"({"schedule": "cosine", "lr_steps": 100})", schedule.out()));
  CALL(st_distributed_sampler_create(8, nullptr, sampler.out()));
  CALL(st_context_create(&options_, context.out()));
  refused("st_require of another version", st_require(99, 0));
  refused("st_recipe_set of no number", st_recipe_set(recipe, "lr", "many"));
  CALL(st_last_error_info(&info));
  CALL(st_callback_error("of no callback"));
  const int64_t dims[] = {2};
  double from[] = {1, 2};
  float to[2];
  const st_view doubles = {ST_F64, 1, dims, nullptr, from, sizeof from}, floats = {ST_F32, 1, dims, nullptr, to, sizeof to};
  CALL(st_view_convert(&doubles, &floats));
  CALL(st_weights_inspect(file_of("nothing.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10)).c_str(), &answer));
}

/// Order of calls: those that leave a handle as others need it, then those that end a step, then destruction.
int place_of(const HandleCall& row) {
  const std::string_view name(row.function);
  if (row.is_destroy()) return 2;
  return name.ends_with("_cancel") || name == "st_trainer_stop" || name == "st_communicator_abort" ? 1 : 0;
}

/// Leaves out the call that needs a rank on a thread of the test, since that has the host's floating-point state, too.
bool needs_another_rank(const HandleCall& row) {
  return row.function == std::string_view("st_trainer_create_in_group") && row.kind == std::string_view("communicator");
}

void Life::call_with_each_handle() {
  AllKinds w(&options_);
  for (const int place : {0, 1, 2}) {
    for (const HandleCall& row : handle_calls()) {
      const std::string_view name(row.function);
      if (place_of(row) != place || needs_another_rank(row)) continue;
      if (name == "st_trainer_forward") {  // a slice was run before it
        for (w.done = 0; w.done == 0;) CALL(st_trainer_advance(w.run.trainer, 0, nullptr, 1000, &w.done, nullptr));
      }
      if (name == "st_trainer_gradient") CALL(st_trainer_step(w.run.trainer, 0, nullptr, nullptr));
      call(row.function, row.call(w, w.of(row.kind)));
    }
    if (place != 1) continue;
    refused("st_trainer_step that was cancelled", st_trainer_step(w.run.trainer, 0, nullptr, nullptr));
    refused("st_communicator_barrier of a group that is over", st_communicator_barrier(w.peer, nullptr, nullptr));
  }
}

void Life::lend_to_a_training() {
  const auto context = hold<HeldContext>(st_context_create, &options_);
  auto op = filled(st_op_callbacks_init);
  op.shape = LendingHost::shape;
  op.forward = LendingHost::forward;
  op.backward = LendingHost::backward;
  CALL(st_op_register(context, "same", &op, &host_));
  const auto graph = hold<HeldGraph>(st_graph_create, context);
  const int64_t column[] = {ST_BATCH, 1};
  st_value x = 0, y = 0, loss[2] = {0, 0};
  CALL(st_graph_input(graph, "x", ST_F32, 2, column, &x));
  CALL(st_graph_input(graph, "y", ST_F32, 2, column, &y));
  CALL(st_layer_mlp(graph, "net", x, R"({"hidden": [8], "outputs": 1})", &x));
  CALL(st_graph_op(graph, "same", 1, &x, nullptr, 1, &x));
  const st_value pair[] = {x, y};
  CALL(st_graph_op(graph, "mse", 2, pair, nullptr, 2, loss));
  CALL(st_graph_loss(graph, loss[0]));
  const auto model = hold<HeldModel>(st_model_create, graph, 1);
  const auto recipe = hold<HeldRecipe>(st_recipe_create, R"({"batch": 4})");
  const auto rows = hold<HeldData>(st_data_callback, context, kSineRows, 2, kSineFields, LendingHost::fill, LendingHost::release, &host_);
  const auto trainer = hold<HeldTrainer>(st_trainer_create, model, recipe, rows);
  CALL(st_trainer_set_schedule(trainer, LendingHost::learning_rate, LendingHost::release, &host_));
  CALL(st_trainer_run(trainer, 2, LendingHost::on_step, &host_));
  CALL(st_model_write(model, LendingHost::write, &host_));
  CALL(st_model_read(model, LendingHost::read, &host_, nullptr, nullptr));
}

void Life::lend_arrays() {
  const auto context = hold<HeldContext>(st_context_create, &options_);
  float values[8] = {};
  int64_t dims[1] = {8};
  const st_view view = {ST_F32, 1, dims, nullptr, values, sizeof values};
  HeldData arrays;
  HeldTensor wrapped, taken;
  DLManagedTensor theirs{};
  theirs.dl_tensor = {values, {1, 0}, 1, {2, 32, 1}, dims, nullptr, 0};
  theirs.manager_ctx = &host_;
  theirs.deleter = LendingHost::deleter;
  CALL(st_data_arrays(context, kSineRows, 2, host_.rows.views, LendingHost::release, &host_, arrays.out()));
  CALL(st_tensor_wrap(context, &view, LendingHost::release, &host_, wrapped.out()));
  CALL(st_tensor_from_dlpack(context, &theirs, taken.out()));
  CALL(st_tensor_destroy(std::exchange(*wrapped.out(), nullptr)));
  CALL(st_tensor_destroy(std::exchange(*taken.out(), nullptr)));
  CALL(st_data_destroy(std::exchange(*arrays.out(), nullptr)));
}

void Life::lend_to_a_text() {
  const auto context = hold<HeldContext>(st_context_create, &options_);
  const auto gpt = hold<HeldModel>(st_model_builtin, context, "gpt", kSmallGpt, 1);
  const auto writer = hold<HeldPredictor>(st_predictor_create, gpt, nullptr);
  auto generate = filled(st_generate_options_init);
  generate.tokens = 3;
  const int32_t prompt = 5;
  CALL(st_predictor_generate(writer, 1, &prompt, &generate, LendingHost::on_token, &host_));
}

#undef CALL

}  // namespace

void live_a_life(const LifeWatch& watch) { Life(watch).live(); }

}  // namespace st::test
