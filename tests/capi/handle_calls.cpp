#include "handle_calls.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

namespace st::test {
namespace {

AllKinds& counted(void* user) {
  auto& w = *static_cast<AllKinds*>(user);
  ++w.callbacks;
  return w;
}

st_status drop_bytes(void* user, const void*, int64_t) { return counted(user), ST_OK; }
st_status take_token(void* user, int32_t) { return counted(user), ST_OK; }
st_status take_step(void* user, const st_step_report*) { return counted(user), ST_OK; }
st_status half_rate(void*, int64_t, double* lr) { return *lr = 0.5, ST_OK; }
void let_go(void* user) { counted(user); }

constexpr st_field kField = {"x", ST_F32, 0, nullptr};

st_status read_weights(void* user, void* bytes, int64_t room, int64_t* count) {
  AllKinds& w = counted(user);
  *count = std::min(room, static_cast<int64_t>(w.weights.size() - w.read));
  std::memcpy(bytes, w.weights.data() + w.read, static_cast<size_t>(*count));
  w.read += static_cast<size_t>(*count);
  return ST_OK;
}

st_status fill_zeros(void* user, int64_t, const int64_t*, int64_t n, const st_view* views) {
  counted(user);
  for (int64_t i = 0; i < n; ++i) std::memset(views[i].data, 0, static_cast<size_t>(views[i].bytes));
  return ST_OK;
}

/// Room for a new handle; destroys the one of an earlier call.
template <class Holder>
auto fresh(Holder& held) {
  held.reset();
  return held.out();
}

/// A call that fills a struct.
template <class Struct, class Call, class... Arguments>
st_status into(st_status (*init)(Struct*, size_t), Call call, const Arguments&... arguments) {
  auto made = filled(init);
  return call(arguments..., &made);
}

st_status same_shape(void*, int32_t, const st_op_type* inputs, int32_t, st_op_type* outputs) { return outputs[0] = inputs[0], ST_OK; }

st_status copy(void*, int32_t, const st_view* inputs, int32_t, const st_view* outputs) {
  return std::memcpy(outputs[0].data, inputs[0].data, static_cast<size_t>(inputs[0].bytes)), ST_OK;
}

st_status next_row(AllKinds& w, AnyHandle h) {
  int64_t row = 0, own = 0;
  return st_distributed_sampler_next(h, 1, &row, &own, &w.number);
}

/// In the group of one, since the other rank of the group of two does not join.
st_status make_data_parallel(AllKinds& w, AnyHandle h) {
  st_communicator* const given = h;
  int32_t rank = 0;
  const bool is_right = given == static_cast<st_communicator*>(w.communicator) && st_communicator_rank(given, &rank) == ST_OK;
  const st_named_view gradient = {"g", w.product_view};
  return st_data_parallel_create(is_right ? static_cast<st_communicator*>(w.alone) : given, 1, &gradient, nullptr,
                                 fresh(w.new_data_parallel));
}

st_status make_pipeline_alone(AllKinds& w, AnyHandle h) {
  st_communicator* const given = h;
  int32_t rank = 0;
  const bool is_right = given == static_cast<st_communicator*>(w.communicator) && st_communicator_rank(given, &rank) == ST_OK;
  return make_pipeline(is_right ? static_cast<st_communicator*>(w.alone) : given, fresh(w.new_pipeline));
}

st_status make_ready(AnyHandle h) {
  const st_status ready = st_data_parallel_gradient_ready(h, 0);
  return ready == ST_OK ? st_data_parallel_synchronize(h) : ready;
}

/// With its gradient ready, if the handle is the right one.
st_status synchronize(AllKinds& w, AnyHandle h) {
  st_data_parallel* const given = h;
  const bool is_right = given != nullptr && given == static_cast<st_data_parallel*>(w.data_parallel);
  const st_status ready = is_right ? st_data_parallel_gradient_ready(given, 0) : ST_OK;
  return ready == ST_OK ? st_data_parallel_synchronize(given) : ready;
}

st_status make_sharded_optimizer(AllKinds& w, AnyHandle h) {
  st_communicator* const given = h;
  int32_t rank = 0;
  const bool is_right = given == static_cast<st_communicator*>(w.communicator) && st_communicator_rank(given, &rank) == ST_OK;
  const st_named_view weight = {"w", w.product_view};
  return st_sharded_optimizer_create(is_right ? static_cast<st_communicator*>(w.alone) : given, nullptr, 1, &weight, nullptr,
                                     fresh(w.new_sharded));
}

/// The gathered state, if the handle is the right one.
st_status load_gathered(AllKinds& w, AnyHandle h) {
  int64_t n = 0;
  const st_named_view* state = nullptr;
  st_sharded_optimizer* const given = h;
  if (given != nullptr && given == static_cast<st_sharded_optimizer*>(w.sharded)) st_sharded_optimizer_gather_state(given, 0, &n, &state);
  std::vector<st_named_view> views(state, state + n);
  for (st_named_view& view : views) view.view.device = w.device;
  return st_sharded_optimizer_load_state(given, n, views.data());
}

st_status register_copy(AnyHandle h) {
  auto callbacks = filled(st_op_callbacks_init);
  callbacks.shape = same_shape;
  callbacks.forward = copy;
  return st_op_register(h, "copy", &callbacks, nullptr);
}

st_status read(AllKinds& w, AnyHandle h) {
  w.read = 0;
  return st_model_read(h, read_weights, &w, nullptr, nullptr);
}

st_status read_file(AllKinds& w, AnyHandle h) {
  const std::string path = file_of("weights.safetensors", w.weights);
  return st_model_read_file(h, path.c_str(), nullptr, nullptr);
}

/// Room for the outputs of the batch.
struct Logits {
  explicit Logits(const AllKinds& w) { view.view.device = w.device; }
  int64_t dims[3] = {3, kSmallContext, 256};
  std::vector<float> values = std::vector<float>(3 * kSmallContext * 256);
  st_named_view view = {"logits", {ST_F32, 3, dims, nullptr, values.data(), static_cast<int64_t>(values.size() * 4)}};
};

st_status predict(AllKinds& w, AnyHandle h) {
  const Logits out(w);
  return st_predictor_run(h, 1, w.batch.views(), 1, &out.view);
}

st_status forward_into(AllKinds& w, AnyHandle h) {
  const Logits out(w);
  return st_trainer_forward_into(h, 2, w.batch.views(), 1, &out.view);
}

st_status generate(AllKinds& w, AnyHandle h) {
  auto options = filled(st_generate_options_init);
  options.tokens = 2;
  return st_predictor_generate(h, 1, w.batch.tokens.data(), &options, take_token, &w);
}

st_status take_dlpack(AllKinds& w, AnyHandle h) {
  const st_status status = st_tensor_from_dlpack(h, w.managed, fresh(w.new_tensor));
  if (status == ST_OK) w.managed = nullptr;
  return status;
}

st_status give_dlpack(AnyHandle h) {
  DLManagedTensor* managed = nullptr;
  const st_status status = st_tensor_to_dlpack(h, &managed);
  if (managed != nullptr) AllKinds::give_back(managed);
  return status;
}

st_status take_dlpack_on(AllKinds& w, AnyHandle h) {
  DLManagedTensor* managed = nullptr;
  st_tensor_to_dlpack(w.tensor, &managed);  // its own: w.managed is taken once
  const st_status status = st_tensor_from_dlpack_on(h, managed, -1, fresh(w.new_tensor));
  if (status != ST_OK && managed != nullptr) AllKinds::give_back(managed);
  return status;
}

st_status give_dlpack_on(AnyHandle h) {
  DLManagedTensor* managed = nullptr;
  const st_status status = st_tensor_to_dlpack_on(h, -1, &managed);
  if (managed != nullptr) AllKinds::give_back(managed);
  return status;
}

st_status ask_dlpack_device(AnyHandle h) {
  int32_t type = 0, index = 0;
  return st_tensor_dlpack_device(h, &type, &index);
}

st_status make_plan(AllKinds& w, AnyHandle h) {
  auto problem = filled(st_gemm_problem_init);
  problem.m = problem.n = problem.k = 4;
  return st_gemm_plan_create(h, &problem, nullptr, fresh(w.new_gemm));
}

st_status multiply_packed(AllKinds& w, AnyHandle gemm, AnyHandle packed) {
  return st_gemm_run_packed(gemm, 1, &w.square, packed, 0, &w.product_view, nullptr);
}

st_status unscale(AllKinds& w, AnyHandle h) { return st_loss_scaler_unscale(h, 1, &w.product_view, &w.done); }

/// Makes the preceding calls of a scaler's step first if the call would be out of order.
template <class Call>
st_status in_turn(AllKinds& w, AnyHandle h, const Call& call) {
  const st_status status = call();
  if (status != ST_WRONG_STATE) return status;
  st_loss_scaler_scale(h, &w.real);
  unscale(w, h);
  if (const st_status unscaled = call(); unscaled != ST_WRONG_STATE) return unscaled;
  st_loss_scaler_step(h, &w.done);
  return call();
}

st_status unscale_in_turn(AllKinds& w, AnyHandle h) {
  const st_status status = unscale(w, h);
  if (status != ST_WRONG_STATE) return status;
  st_loss_scaler_scale(h, &w.real);
  return unscale(w, h);
}

st_status step_scaled(AllKinds& w, st_optimizer* optimizer, st_loss_scaler* scaler) {
  const st_status status = st_optimizer_step_scaled(optimizer, scaler, 1, &w.view, nullptr);
  if (status != ST_WRONG_STATE) return status;
  st_loss_scaler_restore(scaler, R"({"scale":4.0,"good_steps":1})");  // which restarts the step
  st_loss_scaler_scale(scaler, &w.real);
  return st_optimizer_step_scaled(optimizer, scaler, 1, &w.view, nullptr);
}

st_status step_scaled_in_shards(AllKinds& w, st_sharded_optimizer* optimizer, st_loss_scaler* scaler) {
  const st_status status = st_sharded_optimizer_step_scaled(optimizer, scaler, 1, &w.view, nullptr);
  if (status != ST_WRONG_STATE) return status;
  st_loss_scaler_restore(scaler, R"({"scale":4.0,"good_steps":1})");
  st_loss_scaler_scale(scaler, &w.real);
  return st_sharded_optimizer_step_scaled(optimizer, scaler, 1, &w.view, nullptr);
}

st_status make_optimizer(AllKinds& w, AnyHandle h) {
  const st_named_view weight = {nullptr, {ST_F32, 1, w.beta_dims, nullptr, w.other_weight.data(), 64, w.device, 0}};
  return st_optimizer_create(h, nullptr, 1, &weight, fresh(w.new_optimizer));
}

st_status make_accumulator(AllKinds& w, AnyHandle h) {
  const st_view gradient = {ST_F32, 1, w.beta_dims, nullptr, w.other_weight.data(), 64, w.device, 0};
  return st_accumulator_create(h, 2, 1, &gradient, fresh(w.new_accumulator));
}

/// Completes a step that others left incomplete.
st_status add(AllKinds& w, AnyHandle h) {
  const st_status status = st_accumulator_add(h, 3);
  if (status != ST_WRONG_STATE) return status;
  st_accumulator_should_step(h, &w.done);
  return st_accumulator_add(h, 3);
}

st_status set_steps(AnyHandle h) {
  const st_status status = st_accumulator_set_steps(h, 2);
  if (status != ST_WRONG_STATE) return status;
  st_accumulator_reset(h);
  return st_accumulator_set_steps(h, 2);
}

/// The checkpoint of each AllKinds' initial trainer.
constexpr const char* kFirst = "step-00000001";

st_status make_checkpoint(AllKinds& w, AnyHandle h) {
  return st_checkpoint_create(h, w.new_folder.c_str(), nullptr, fresh(w.new_checkpoint));
}

st_status save(AllKinds& w, AnyHandle h) { return st_checkpoint_save(h, 1, 1, &w.named, nullptr, fresh(w.new_pending)); }

st_status load(AllKinds& w, AnyHandle h) {
  const st_named_view to = {"final_norm.beta", w.room};
  auto options = filled(st_read_options_init);
  auto report = filled(st_load_report_init);
  options.partial = 1;
  return st_checkpoint_load(h, kFirst, 1, &to, &options, &report);
}

st_status save_trainer(AllKinds& w, AnyHandle trainer, AnyHandle checkpoint) {
  return st_trainer_save(trainer, checkpoint, nullptr, fresh(w.new_pending));
}
st_status save_collective(AllKinds& w, AnyHandle trainer, AnyHandle checkpoint) {
  return st_trainer_save_collective(trainer, checkpoint, nullptr, fresh(w.new_pending));
}

st_status reshard(AllKinds& w, AnyHandle h) {
  const std::string folder = w.path("resharded");
  const st_status status = st_checkpoint_reshard(h, kFirst, folder.c_str(), 2);
  std::filesystem::remove_all(folder);
  return status;
}

st_status make_ranks(AllKinds& w, AnyHandle h) {
  w.new_communicator.reset();
  w.more_communicator.reset();
  st_communicator* ranks[2] = {};
  const st_status status = st_communicator_local(h, 2, nullptr, ranks);
  *w.new_communicator.out() = ranks[0];
  *w.more_communicator.out() = ranks[1];
  return status;
}

st_status join_alone(AllKinds& w, AnyHandle h) {
  return st_communicator_processes(h, w.path("job").c_str(), 0, 1, nullptr, fresh(w.new_communicator));
}

/// Without such a plug-in the call fails late: errors of the handle come first.
st_status join_hosts_group(AllKinds& w, AnyHandle h) {
  const st_status status = st_communicator_host(h, "none", nullptr, nullptr, fresh(w.new_communicator));
  return status == ST_UNAVAILABLE ? ST_OK : status;
}

/// A group without other ranks, so no callback is called.
st_status join_callbacks(AllKinds& w, AnyHandle h) {
  auto callbacks = filled(st_transport_callbacks_init);
  callbacks.write = [](void*, int32_t, const void*, int64_t, int64_t*) -> st_status { return ST_IO; };
  callbacks.read = [](void*, int32_t, void*, int64_t, int64_t*) -> st_status { return ST_IO; };
  return st_communicator_callbacks(h, 0, 1, &callbacks, nullptr, nullptr, fresh(w.new_communicator));
}

st_status create_alone(AllKinds& w, st_model* model, st_recipe* recipe, st_data* data) {
  HeldCommunicator alone;
  const st_status status = st_communicator_local(w.run.context, 1, nullptr, alone.out());
  return status != ST_OK ? status : st_trainer_create_in_group(model, recipe, data, alone, fresh(w.new_trainer));
}

/// The peer makes its call unless ours is refused at once.
template <class Ours, class Theirs>
st_status beside_peer(const Ours& ours, const Theirs& theirs) {
  std::atomic<bool> is_done = false;
  std::thread peer([&] {
    std::fesetenv(FE_DFL_ENV);  // as the library's threads, not as the host's that started it
    for (int i = 0; i < 20 && !is_done; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!is_done) theirs();
  });
  const st_status status = ours();
  is_done = true;
  peer.join();
  return status;
}

st_status create_beside_peer(AllKinds& w, AnyHandle h) {
  const auto join = [&] {
    const auto model = hold<HeldModel>(st_model_builtin, w.run.context, "gpt", kAllKindsGpt, 1);
    const auto trainer = hold<HeldTrainer>(st_trainer_create_in_group, model, w.run.recipe, w.run.data, w.peer);
  };
  return beside_peer([&] { return st_trainer_create_in_group(w.run.model, w.run.recipe, w.run.data, h, fresh(w.new_trainer)); }, join);
}

st_status split_beside_peer(AllKinds& w, AnyHandle h) {
  return beside_peer([&] { return st_communicator_split(h, 0, 0, nullptr, fresh(w.new_communicator)); },
                     [&] { st_communicator_split(w.peer, 0, 0, nullptr, fresh(w.more_communicator)); });
}

st_status duplicate_beside_peer(AllKinds& w, AnyHandle h) {
  return beside_peer([&] { return st_communicator_duplicate(h, nullptr, fresh(w.new_communicator)); },
                     [&] { st_communicator_duplicate(w.peer, nullptr, fresh(w.more_communicator)); });
}

/// A collective of both ranks, ours in the background while the peer's runs: call(rank's arrays, communicator, pending).
template <class Call>
st_status both_ranks(AllKinds& w, AnyHandle h, const Call& call) {
  const st_status status = call(w.arrays[0], h, fresh(w.new_pending));
  if (status != ST_OK) return status;
  const st_status theirs = call(w.arrays[1], w.peer, nullptr);
  const st_status ours = st_pending_wait(w.new_pending, -1);
  return ours != ST_OK ? ours : theirs;
}

using Ranks = const RankArrays&;
using Comm = st_communicator*;

st_status all_reduce(Ranks a, Comm c, st_pending** p) { return st_communicator_all_reduce(c, "x", &a.whole, ST_REDUCE_SUM, p); }
st_status reduce_scatter(Ranks a, Comm c, st_pending** p) {
  return st_communicator_reduce_scatter(c, "x", &a.whole, &a.share, ST_REDUCE_SUM, p);
}
st_status all_gather(Ranks a, Comm c, st_pending** p) { return st_communicator_all_gather(c, "x", &a.share, &a.whole, p); }
st_status all_to_all(Ranks a, Comm c, st_pending** p) { return st_communicator_all_to_all(c, "x", &a.whole, &a.other, p); }
st_status broadcast(Ranks a, Comm c, st_pending** p) { return st_communicator_broadcast(c, "x", &a.whole, 1, p); }
st_status send(Ranks a, Comm c, st_pending** p) {
  return a.rank == 0 ? st_communicator_send(c, "x", &a.whole, 1, p) : st_communicator_receive(c, "x", &a.whole, 0, p);
}
st_status receive(Ranks a, Comm c, st_pending** p) {
  return a.rank == 0 ? st_communicator_receive(c, "x", &a.whole, 1, p) : st_communicator_send(c, "x", &a.whole, 0, p);
}
st_status barrier(Ranks, Comm c, st_pending** p) { return st_communicator_barrier(c, nullptr, p); }

#define CALL(expression) [](AllKinds& w, AnyHandle h) -> st_status { return static_cast<void>(w), expression; }

constexpr HandleCall kCalls[] = {
    {"st_context_destroy", "context", "context", CALL(st_context_destroy(h))},
    {"st_context_cancel", "context", "context", CALL(st_context_cancel(h))},
    {"st_context_trim", "context", "context", CALL(st_context_trim(h))},
    {"st_context_memory", "context", "context", CALL(into(st_memory_stats_init, st_context_memory, h))},
    {"st_context_use_stream", "context", "context", CALL(st_context_use_stream(h, -1))},
    {"st_context_stream", "context", "context", CALL(st_context_stream(h, &w.number))},
    {"st_context_reset_peak", "context", "context", CALL(st_context_reset_peak(h))},

    {"st_machine_calibrate", "context", "context", CALL(st_machine_calibrate(h, R"({"seconds":0,"quick":true})", &w.text))},
    {"st_graph_create", "context", "context", CALL(st_graph_create(h, fresh(w.new_graph)))},
    {"st_graph_destroy", "graph", "graph", CALL(st_graph_destroy(h))},
    {"st_graph_input", "graph", "graph", CALL(st_graph_input(h, "more", ST_F32, 1, w.beta_dims, &w.value))},
    {"st_graph_parameter", "graph", "graph", CALL(st_graph_parameter(h, "w", 1, w.beta_dims, ST_INIT_ONES, 1, &w.value))},
    {"st_graph_op", "graph", "graph", CALL(st_graph_op(h, "gelu", 1, &w.x, nullptr, 1, &w.value))},
    {"st_graph_apply", "graph", "graph", CALL(st_graph_apply(h, "gelu", 1, &w.x, 0, nullptr, 1, &w.value))},
    {"st_graph_value", "graph", "graph", CALL(into(st_value_info_init, st_graph_value, h, w.x))},
    {"st_graph_parameter_values", "graph", "graph", CALL(st_graph_parameter_values(h, "v", &w.view, 1, &w.value))},
    {"st_graph_scope", "graph", "graph", CALL(st_graph_scope(h, "scope"))},
    {"st_graph_scope_end", "graph", "graph", CALL(st_graph_scope_end(h))},
    {"st_graph_output", "graph", "graph", CALL(st_graph_output(h, "x", w.x))},
    {"st_graph_loss", "graph", "graph", CALL(st_graph_loss(h, w.loss))},
    {"st_graph_text", "graph", "graph", CALL(st_graph_text(h, &w.text))},
    {"st_op_register", "context", "context", CALL(register_copy(h))},

    {"st_layer_linear", "graph", "graph", CALL(st_layer_linear(h, "linear", w.sequence, R"({"outputs": 2})", &w.value))},
    {"st_layer_embedding", "graph", "graph",
     CALL(st_layer_embedding(h, "embedding", w.tokens, R"({"vocabulary": 9, "width": 2})", &w.value))},
    {"st_layer_norm", "graph", "graph", CALL(st_layer_norm(h, "norm", w.sequence, nullptr, &w.value))},
    {"st_layer_attention", "graph", "graph", CALL(st_layer_attention(h, "attention", w.sequence, R"({"heads": 2})", &w.value))},
    {"st_layer_mlp", "graph", "graph", CALL(st_layer_mlp(h, "mlp", w.sequence, R"({"hidden": [3], "outputs": 2})", &w.value))},
    {"st_layer_dropout", "graph", "graph", CALL(st_layer_dropout(h, "dropout", w.sequence, nullptr, &w.value))},

    {"st_model_create", "graph", "graph", CALL(st_model_create(h, 1, fresh(w.new_model)))},
    {"st_model_builtin", "context", "context", CALL(st_model_builtin(h, "mlp", nullptr, 1, fresh(w.new_model)))},
    {"st_model_destroy", "model", "model", CALL(st_model_destroy(h))},
    {"st_model_parameter_count", "model", "model", CALL(st_model_parameter_count(h, &w.number))},
    {"st_model_parameter", "model", "model", CALL(into(st_parameter_info_init, st_model_parameter, h, 0))},
    {"st_model_clone", "model", "model", CALL(st_model_clone(h, fresh(w.new_model)))},
    {"st_model_clone_collective", "model", "model", CALL(st_model_clone_collective(h, fresh(w.new_model)))},
    {"st_model_blend", "to", "model", CALL(st_model_blend(h, w.other, 0))},
    {"st_model_blend", "from", "model", CALL(st_model_blend(w.other, h, 0))},
    {"st_model_digest", "model", "model", CALL(st_model_digest(h, &w.text))},
    {"st_model_digest_collective", "model", "model", CALL(st_model_digest_collective(h, &w.text))},
    {"st_model_get", "model", "model", CALL(st_model_get(h, "final_norm.beta", &w.view))},
    {"st_model_get_collective", "model", "model", CALL(st_model_get_collective(h, "final_norm.beta", &w.view))},
    {"st_model_set", "model", "model", CALL(st_model_set(h, "final_norm.beta", &w.view))},
    {"st_model_write_file", "model", "model", CALL(st_model_write_file(h, w.path("weights.safetensors").c_str(), fresh(w.new_pending)))},
    {"st_model_write_file_collective", "model", "model",
     CALL(st_model_write_file_collective(h, w.path("weights.safetensors").c_str(), fresh(w.new_pending)))},
    {"st_model_read_file", "model", "model", CALL(read_file(w, h))},
    {"st_model_write", "model", "model", CALL(st_model_write(h, drop_bytes, &w))},
    {"st_model_write_collective", "model", "model", CALL(st_model_write_collective(h, drop_bytes, &w))},
    {"st_model_read", "model", "model", CALL(read(w, h))},

    {"st_data_files", "context", "context", CALL(st_data_files(h, w.source.c_str(), R"({"context": 8})", fresh(w.new_data)))},
    {"st_data_destroy", "data", "data", CALL(st_data_destroy(h))},
    {"st_data_arrays", "context", "context", CALL(st_data_arrays(h, 16, 1, &w.named, let_go, &w, fresh(w.new_data)))},
    {"st_data_callback", "context", "context", CALL(st_data_callback(h, 4, 1, &kField, fill_zeros, let_go, &w, fresh(w.new_data)))},
    {"st_data_split", "data", "data", CALL(st_data_split(h, 0.5, 1, fresh(w.new_data), fresh(w.more_data)))},
    {"st_data_rows", "data", "data", CALL(st_data_rows(h, &w.number))},
    {"st_data_vocabulary", "data", "data", CALL(st_data_vocabulary(h, &w.number))},
    {"st_data_bigram_loss", "train", "data", CALL(st_data_bigram_loss(h, w.run.data, &w.real))},
    {"st_data_bigram_loss", "validation", "data", CALL(st_data_bigram_loss(w.run.data, h, &w.real))},

    {"st_recipe_destroy", "recipe", "recipe", CALL(st_recipe_destroy(h))},
    {"st_recipe_set", "recipe", "recipe", CALL(st_recipe_set(h, "lr", "0.25"))},
    {"st_recipe_get", "recipe", "recipe", CALL(st_recipe_get(h, "lr", &w.text))},
    {"st_recipe_json", "recipe", "recipe", CALL(st_recipe_json(h, &w.text))},

    {"st_trainer_create", "model", "model", CALL(st_trainer_create(h, w.run.recipe, w.run.data, fresh(w.new_trainer)))},
    {"st_trainer_create", "recipe", "recipe", CALL(st_trainer_create(w.run.model, h, w.run.data, fresh(w.new_trainer)))},
    {"st_trainer_create", "data", "data", CALL(st_trainer_create(w.run.model, w.run.recipe, h, fresh(w.new_trainer)))},
    {"st_trainer_create_in_group", "model", "model", CALL(create_alone(w, h, w.run.recipe, w.run.data))},
    {"st_trainer_create_in_group", "recipe", "recipe", CALL(create_alone(w, w.run.model, h, w.run.data))},
    {"st_trainer_create_in_group", "data", "data", CALL(create_alone(w, w.run.model, w.run.recipe, h))},
    {"st_trainer_create_in_group", "communicator", "communicator", CALL(create_beside_peer(w, h))},
    {"st_trainer_destroy", "trainer", "trainer", CALL(st_trainer_destroy(h))},
    {"st_trainer_step", "trainer", "trainer", CALL(st_trainer_step(h, 0, nullptr, nullptr))},
    {"st_trainer_run", "trainer", "trainer", CALL(st_trainer_run(h, 3, take_step, &w))},
    {"st_trainer_advance", "trainer", "trainer", CALL(st_trainer_advance(h, 0, nullptr, 0, &w.done, nullptr))},
    {"st_trainer_forward", "trainer", "trainer", CALL(st_trainer_forward(h, 2, w.batch.views(), &w.number, &w.outputs))},
    {"st_trainer_forward_into", "trainer", "trainer", CALL(forward_into(w, h))},
    {"st_trainer_backward", "trainer", "trainer", CALL(st_trainer_backward(h, 0, nullptr))},
    {"st_trainer_apply", "trainer", "trainer", CALL(st_trainer_apply(h, nullptr))},
    {"st_trainer_gradient", "trainer", "trainer", CALL(st_trainer_gradient(h, "final_norm.beta", &w.room))},
    {"st_trainer_gradient_collective", "trainer", "trainer", CALL(st_trainer_gradient_collective(h, "final_norm.beta", &w.room))},
    {"st_trainer_set", "trainer", "trainer", CALL(st_trainer_set(h, "lr", "0.25"))},
    {"st_trainer_set_schedule", "trainer", "trainer", CALL(st_trainer_set_schedule(h, half_rate, nullptr, nullptr))},
    {"st_trainer_get", "trainer", "trainer", CALL(st_trainer_get(h, "lr", &w.text))},
    {"st_trainer_stop", "trainer", "trainer", CALL(st_trainer_stop(h))},
    {"st_trainer_cancel", "trainer", "trainer", CALL(st_trainer_cancel(h))},
    {"st_trainer_evaluate", "trainer", "trainer", CALL(into(st_evaluation_init, st_trainer_evaluate, h, w.of("data")))},
    {"st_trainer_evaluate_collective", "trainer", "trainer",
     CALL(into(st_evaluation_init, st_trainer_evaluate_collective, h, w.of("data")))},
    {"st_trainer_evaluate", "data", "data", CALL(into(st_evaluation_init, st_trainer_evaluate, w.of("trainer"), h))},
    {"st_trainer_evaluate_collective", "data", "data", CALL(into(st_evaluation_init, st_trainer_evaluate_collective, w.of("trainer"), h))},
    {"st_trainer_evaluate_average", "trainer", "trainer", CALL(into(st_evaluation_init, st_trainer_evaluate_average, h, w.of("data")))},
    {"st_trainer_evaluate_average_collective", "trainer", "trainer",
     CALL(into(st_evaluation_init, st_trainer_evaluate_average_collective, h, w.of("data")))},
    {"st_trainer_evaluate_average", "data", "data", CALL(into(st_evaluation_init, st_trainer_evaluate_average, w.of("trainer"), h))},
    {"st_trainer_evaluate_average_collective", "data", "data",
     CALL(into(st_evaluation_init, st_trainer_evaluate_average_collective, w.of("trainer"), h))},
    {"st_trainer_average", "trainer", "trainer", CALL(st_trainer_average(h, "final_norm.beta", &w.room))},
    {"st_trainer_average_collective", "trainer", "trainer", CALL(st_trainer_average_collective(h, "final_norm.beta", &w.room))},
    {"st_trainer_use_average", "trainer", "trainer", CALL(st_trainer_use_average(h))},
    {"st_trainer_digest", "trainer", "trainer", CALL(st_trainer_digest(h, &w.text))},
    {"st_trainer_digest_collective", "trainer", "trainer", CALL(st_trainer_digest_collective(h, &w.text))},
    {"st_trainer_plan", "trainer", "trainer", CALL(st_trainer_plan(h, &w.text))},
    {"st_trainer_explain", "trainer", "trainer", CALL(st_trainer_explain(h, &w.text))},
    {"st_trainer_timeline", "trainer", "trainer", CALL(st_trainer_timeline(h, &w.text))},
    {"st_trainer_forecast", "trainer", "trainer", CALL(st_trainer_forecast(h, nullptr, &w.text))},
    {"st_trainer_log", "trainer", "trainer", CALL(st_trainer_log(h, w.path("second_log.jsonl").c_str()))},
    {"st_trainer_log_end", "trainer", "trainer", CALL(st_trainer_log_end(h, 0))},
    {"st_trainer_write_report", "trainer", "trainer", CALL(st_trainer_write_report(h, w.path("report.html").c_str(), nullptr))},

    {"st_predictor_create", "model", "model", CALL(st_predictor_create(h, nullptr, fresh(w.new_predictor)))},
    {"st_predictor_create_collective", "model", "model", CALL(st_predictor_create_collective(h, nullptr, fresh(w.new_predictor)))},
    {"st_predictor_destroy", "predictor", "predictor", CALL(st_predictor_destroy(h))},
    {"st_predictor_run", "predictor", "predictor", CALL(predict(w, h))},
    {"st_predictor_refresh", "predictor", "predictor", CALL(st_predictor_refresh(h))},
    {"st_predictor_generate", "predictor", "predictor", CALL(generate(w, h))},

    {"st_tensor_create", "context", "context", CALL(st_tensor_create(h, ST_F32, 1, w.beta_dims, fresh(w.new_tensor)))},
    {"st_tensor_wrap", "context", "context", CALL(st_tensor_wrap(h, &w.view, let_go, &w, fresh(w.new_tensor)))},
    {"st_tensor_destroy", "tensor", "tensor", CALL(st_tensor_destroy(h))},
    {"st_tensor_view", "tensor", "tensor", CALL(st_tensor_view(h, &w.new_view))},
    {"st_tensor_from_dlpack", "context", "context", CALL(take_dlpack(w, h))},
    {"st_tensor_to_dlpack", "tensor", "tensor", CALL(give_dlpack(h))},
    {"st_tensor_from_dlpack_on", "context", "context", CALL(take_dlpack_on(w, h))},
    {"st_tensor_to_dlpack_on", "tensor", "tensor", CALL(give_dlpack_on(h))},
    {"st_tensor_dlpack_device", "tensor", "tensor", CALL(ask_dlpack_device(h))},

    {"st_pending_wait", "pending", "pending", CALL(st_pending_wait(h, -1))},
    {"st_pending_poll", "pending", "pending", CALL(st_pending_poll(h, &w.done))},
    {"st_pending_destroy", "pending", "pending", CALL(st_pending_destroy(h))},

    {"st_gemm_plan_create", "context", "context", CALL(make_plan(w, h))},
    {"st_gemm_plan_destroy", "gemm", "gemm", CALL(st_gemm_plan_destroy(h))},
    {"st_gemm_plan_info", "gemm", "gemm", CALL(into(st_gemm_info_init, st_gemm_plan_info, h))},
    {"st_gemm_pack", "gemm", "gemm", CALL(st_gemm_pack(h, &w.square, fresh(w.new_packed)))},
    {"st_gemm_repack", "packed", "packed", CALL(st_gemm_repack(h, &w.square))},
    {"st_packed_destroy", "packed", "packed", CALL(st_packed_destroy(h))},
    {"st_gemm_run", "gemm", "gemm", CALL(st_gemm_run(h, 1, &w.square, &w.square, 0, &w.product_view, nullptr))},
    {"st_gemm_run_packed", "gemm", "gemm", CALL(multiply_packed(w, h, w.of("packed")))},
    {"st_gemm_run_packed", "b", "packed", CALL(multiply_packed(w, w.of("gemm"), h))},

    {"st_plan_create", "model", "model", CALL(st_plan_create(h, w.run.recipe, kPlannedMachine, fresh(w.new_plan)))},
    {"st_plan_create", "recipe", "recipe", CALL(st_plan_create(w.run.model, h, kPlannedMachine, fresh(w.new_plan)))},
    {"st_plan_destroy", "plan", "plan", CALL(st_plan_destroy(h))},
    {"st_plan_json", "plan", "plan", CALL(st_plan_json(h, &w.text))},
    {"st_plan_text", "plan", "plan", CALL(st_plan_text(h, &w.text))},
    {"st_plan_report", "plan", "plan", CALL(st_plan_report(h, &w.text))},
    {"st_plan_trace", "plan", "plan", CALL(st_plan_trace(h, &w.text))},
    {"st_plan_recipe", "plan", "plan", CALL(st_plan_recipe(h, &w.text))},

    {"st_schedule_destroy", "schedule", "schedule", CALL(st_schedule_destroy(h))},
    {"st_schedule_at", "schedule", "schedule", CALL(st_schedule_at(h, 3, &w.real))},
    {"st_distributed_sampler_destroy", "sampler", "distributed_sampler", CALL(st_distributed_sampler_destroy(h))},
    {"st_distributed_sampler_next", "sampler", "distributed_sampler", CALL(next_row(w, h))},
    {"st_distributed_sampler_set_epoch", "sampler", "distributed_sampler", CALL(st_distributed_sampler_set_epoch(h, 2))},
    {"st_distributed_sampler_cursor", "sampler", "distributed_sampler", CALL(st_distributed_sampler_cursor(h, &w.number))},
    {"st_distributed_sampler_set_cursor", "sampler", "distributed_sampler", CALL(st_distributed_sampler_set_cursor(h, 11))},
    {"st_clip_norm", "context", "context", CALL(st_clip_norm(h, 1, &w.product_view, 0, &w.real))},
    {"st_loss_scaler_create", "context", "context", CALL(st_loss_scaler_create(h, nullptr, fresh(w.new_loss_scaler)))},
    {"st_loss_scaler_destroy", "scaler", "loss_scaler", CALL(st_loss_scaler_destroy(h))},
    {"st_loss_scaler_scale", "scaler", "loss_scaler", CALL(st_loss_scaler_scale(h, &w.real))},
    {"st_loss_scaler_unscale", "scaler", "loss_scaler", CALL(unscale_in_turn(w, h))},
    {"st_loss_scaler_step", "scaler", "loss_scaler", CALL(in_turn(w, h, [&] { return st_loss_scaler_step(h, &w.done); }))},
    {"st_loss_scaler_update", "scaler", "loss_scaler", CALL(in_turn(w, h, [&] { return st_loss_scaler_update(h, nullptr); }))},
    {"st_loss_scaler_state", "scaler", "loss_scaler", CALL(st_loss_scaler_state(h, &w.text))},
    {"st_loss_scaler_restore", "scaler", "loss_scaler", CALL(st_loss_scaler_restore(h, R"({"scale":4.0,"good_steps":1})"))},
    {"st_optimizer_create", "context", "context", CALL(make_optimizer(w, h))},
    {"st_optimizer_destroy", "optimizer", "optimizer", CALL(st_optimizer_destroy(h))},
    {"st_optimizer_step", "optimizer", "optimizer", CALL(st_optimizer_step(h, 1, &w.view, nullptr))},
    {"st_optimizer_step_scaled", "optimizer", "optimizer", CALL(step_scaled(w, h, w.loss_scaler))},
    {"st_optimizer_step_scaled", "scaler", "loss_scaler", CALL(step_scaled(w, w.optimizer, h))},
    {"st_optimizer_keep_copies", "optimizer", "optimizer", CALL(st_optimizer_keep_copies(h, 0, nullptr))},
    {"st_optimizer_set", "optimizer", "optimizer", CALL(st_optimizer_set(h, "lr", "0.01"))},
    {"st_optimizer_state_views", "optimizer", "optimizer", CALL(st_optimizer_state_views(h, &w.number, &w.outputs))},
    {"st_accumulator_create", "context", "context", CALL(make_accumulator(w, h))},
    {"st_accumulator_destroy", "accumulator", "accumulator", CALL(st_accumulator_destroy(h))},
    {"st_accumulator_add", "accumulator", "accumulator", CALL(add(w, h))},
    {"st_accumulator_should_step", "accumulator", "accumulator", CALL(st_accumulator_should_step(h, &w.done))},
    {"st_accumulator_weight", "accumulator", "accumulator", CALL(st_accumulator_weight(h, &w.real))},
    {"st_accumulator_reset", "accumulator", "accumulator", CALL(st_accumulator_reset(h))},
    {"st_accumulator_set_steps", "accumulator", "accumulator", CALL(set_steps(h))},
    {"st_accumulator_state_views", "accumulator", "accumulator", CALL(st_accumulator_state_views(h, &w.number, &w.outputs))},

    {"st_checkpoint_create", "context", "context", CALL(make_checkpoint(w, h))},
    {"st_checkpoint_destroy", "checkpoint", "checkpoint", CALL(st_checkpoint_destroy(h))},
    {"st_checkpoint_save", "checkpoint", "checkpoint", CALL(save(w, h))},
    {"st_checkpoint_load", "checkpoint", "checkpoint", CALL(load(w, h))},
    {"st_checkpoint_list", "checkpoint", "checkpoint", CALL(st_checkpoint_list(h, &w.text))},
    {"st_checkpoint_inspect", "checkpoint", "checkpoint", CALL(st_checkpoint_inspect(h, nullptr, &w.text))},
    {"st_checkpoint_verify", "checkpoint", "checkpoint", CALL(st_checkpoint_verify(h, nullptr, &w.text))},
    {"st_checkpoint_hash", "checkpoint", "checkpoint", CALL(st_checkpoint_hash(h, kFirst, &w.text))},
    {"st_checkpoint_reshard", "checkpoint", "checkpoint", CALL(reshard(w, h))},
    {"st_checkpoint_export", "checkpoint", "checkpoint", CALL(st_checkpoint_export(h, kFirst, w.path("export.safetensors").c_str(), 0))},
    {"st_checkpoint_wait", "checkpoint", "checkpoint", CALL(st_checkpoint_wait(h, -1))},
    {"st_checkpoint_progress", "checkpoint", "checkpoint", CALL(into(st_save_progress_init, st_checkpoint_progress, h))},
    {"st_trainer_save", "trainer", "trainer", CALL(save_trainer(w, h, w.of("checkpoint")))},
    {"st_trainer_save_collective", "trainer", "trainer", CALL(save_collective(w, h, w.of("checkpoint")))},
    {"st_trainer_save", "checkpoint", "checkpoint", CALL(save_trainer(w, w.of("trainer"), h))},
    {"st_trainer_save_collective", "checkpoint", "checkpoint", CALL(save_collective(w, w.of("trainer"), h))},
    {"st_trainer_save_every", "trainer", "trainer", CALL(st_trainer_save_every(h, w.checkpoint, 1000, 0))},
    {"st_trainer_save_every_collective", "trainer", "trainer", CALL(st_trainer_save_every_collective(h, w.checkpoint, 1000, 0))},
    {"st_trainer_save_every", "checkpoint", "checkpoint", CALL(st_trainer_save_every(w.run.trainer, h, 1000, 0))},
    {"st_trainer_save_every_collective", "checkpoint", "checkpoint", CALL(st_trainer_save_every_collective(w.run.trainer, h, 1000, 0))},
    {"st_trainer_resume", "trainer", "trainer", CALL(st_trainer_resume(h, w.checkpoint, kFirst, nullptr, nullptr))},
    {"st_trainer_resume", "checkpoint", "checkpoint", CALL(st_trainer_resume(w.run.trainer, h, kFirst, nullptr, nullptr))},
    {"st_model_load", "model", "model", CALL(st_model_load(h, w.checkpoint, kFirst, nullptr, nullptr))},
    {"st_model_load", "checkpoint", "checkpoint", CALL(st_model_load(w.run.model, h, kFirst, nullptr, nullptr))},

    {"st_communicator_local", "context", "context", CALL(make_ranks(w, h))},
    {"st_communicator_processes", "context", "context", CALL(join_alone(w, h))},
    {"st_communicator_env", "context", "context", CALL(st_communicator_env(h, nullptr, fresh(w.new_communicator)))},
    {"st_communicator_host", "context", "context", CALL(join_hosts_group(w, h))},
    {"st_communicator_callbacks", "context", "context", CALL(join_callbacks(w, h))},
    {"st_communicator_destroy", "communicator", "communicator", CALL(st_communicator_destroy(h))},
    {"st_communicator_rank", "communicator", "communicator", CALL(st_communicator_rank(h, &w.done))},
    {"st_communicator_size", "communicator", "communicator", CALL(st_communicator_size(h, &w.done))},
    {"st_communicator_share", "communicator", "communicator", CALL(st_communicator_share(h, 16, 0, &w.number, &w.number))},
    {"st_communicator_all_reduce", "communicator", "communicator", CALL(both_ranks(w, h, all_reduce))},
    {"st_communicator_reduce_scatter", "communicator", "communicator", CALL(both_ranks(w, h, reduce_scatter))},
    {"st_communicator_all_gather", "communicator", "communicator", CALL(both_ranks(w, h, all_gather))},
    {"st_communicator_all_to_all", "communicator", "communicator", CALL(both_ranks(w, h, all_to_all))},
    {"st_communicator_broadcast", "communicator", "communicator", CALL(both_ranks(w, h, broadcast))},
    {"st_communicator_send", "communicator", "communicator", CALL(both_ranks(w, h, send))},
    {"st_communicator_receive", "communicator", "communicator", CALL(both_ranks(w, h, receive))},
    {"st_communicator_barrier", "communicator", "communicator", CALL(both_ranks(w, h, barrier))},
    {"st_communicator_split", "communicator", "communicator", CALL(split_beside_peer(w, h))},
    {"st_communicator_duplicate", "communicator", "communicator", CALL(duplicate_beside_peer(w, h))},
    {"st_communicator_sent_bytes", "communicator", "communicator", CALL(st_communicator_sent_bytes(h, &w.number))},
    {"st_communicator_flight_record", "communicator", "communicator", CALL(st_communicator_flight_record(h, &w.text))},
    {"st_data_parallel_create", "communicator", "communicator", CALL(make_data_parallel(w, h))},
    {"st_data_parallel_destroy", "data_parallel", "data_parallel", CALL(st_data_parallel_destroy(h))},
    {"st_data_parallel_gradient_ready", "data_parallel", "data_parallel", CALL(make_ready(h))},
    {"st_data_parallel_synchronize", "data_parallel", "data_parallel", CALL(synchronize(w, h))},
    {"st_data_parallel_no_sync", "data_parallel", "data_parallel", CALL(st_data_parallel_no_sync(h, 0))},
    {"st_sharded_optimizer_create", "communicator", "communicator", CALL(make_sharded_optimizer(w, h))},
    {"st_sharded_optimizer_destroy", "optimizer", "sharded_optimizer", CALL(st_sharded_optimizer_destroy(h))},
    {"st_sharded_optimizer_keep_copies", "optimizer", "sharded_optimizer", CALL(st_sharded_optimizer_keep_copies(h, 0, nullptr))},
    {"st_sharded_optimizer_set", "optimizer", "sharded_optimizer", CALL(st_sharded_optimizer_set(h, "lr", "0.01"))},
    {"st_sharded_optimizer_gather_state", "optimizer", "sharded_optimizer",
     CALL(st_sharded_optimizer_gather_state(h, -1, &w.number, &w.outputs))},
    {"st_sharded_optimizer_load_state", "optimizer", "sharded_optimizer", CALL(load_gathered(w, h))},
    {"st_sharded_optimizer_gradient_ready", "optimizer", "sharded_optimizer", CALL(st_sharded_optimizer_gradient_ready(h, 0, &w.view))},
    {"st_sharded_optimizer_step", "optimizer", "sharded_optimizer", CALL(st_sharded_optimizer_step(h, 1, &w.view, nullptr))},
    {"st_sharded_optimizer_step_scaled", "optimizer", "sharded_optimizer", CALL(step_scaled_in_shards(w, h, w.loss_scaler))},
    {"st_sharded_optimizer_step_scaled", "scaler", "loss_scaler", CALL(step_scaled_in_shards(w, w.sharded, h))},
    {"st_pipeline_create", "communicator", "communicator", CALL(make_pipeline_alone(w, h))},
    {"st_pipeline_destroy", "pipeline", "pipeline", CALL(st_pipeline_destroy(h))},
    {"st_pipeline_run", "pipeline", "pipeline", CALL(st_pipeline_run(h, 3))},
    {"st_pipeline_schedule", "pipeline", "pipeline", CALL(st_pipeline_schedule(h, 3, &w.text))},
    {"st_communicator_abort", "communicator", "communicator", CALL(st_communicator_abort(h, "a test"))},  // the last: it ends the group
};
#undef CALL

}  // namespace

bool HandleCall::has_message() const {
  const std::string_view name(function);
  return name != "st_context_cancel" && name != "st_trainer_stop" && name != "st_trainer_cancel";
}

std::span<const HandleCall> handle_calls() { return kCalls; }

}  // namespace st::test
