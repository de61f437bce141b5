#include "guest_life.h"

#include "checkpoint_folder.h"
#include "lending_host.h"

namespace st::test {
namespace {

constexpr int64_t kRows = 4;

#define CALL(expression) call(#expression, expression)

class Life {
 public:
  explicit Life(const LifeWatch& watch) : watch_(watch), host_(watch) {}
  void live() {
    begin();
    build_graphs();
    make_models();
    use_tensors();
    multiply();
    scale_a_loss();
    optimize();
    accumulate();
    open_data();
    train_on_text();
    train_on_rows();
    compute_the_loss();
    save_and_resume();
    exchange();
    predict();
    look();
    fail();
    end();
  }

 private:
  void call(const char* name, st_status status) {
    watch_.after(name);
    EXPECT_TRUE(works(status)) << name;
  }
  /// And some that fail.
  void refused(const char* name, st_status status) {
    watch_.after(name);
    EXPECT_NE(status, ST_OK) << name;
  }
  void begin();
  void build_graphs();
  void make_models();
  void use_tensors();
  void multiply();
  void scale_a_loss();
  void optimize();
  void accumulate();
  void open_data();
  void train_on_text();
  void train_on_rows();
  void compute_the_loss();
  void save_and_resume();
  void exchange();
  void update_in_shards(st_communicator* alone);
  void predict();
  void look();
  void fail();
  void end();

  const LifeWatch& watch_;
  LendingHost host_;
  const std::string text_ = text_file("life.txt", 2000), weights_ = file_of("life.safetensors", ""), page_ = file_of("life.html", ""),
                    log_ = file_of("life.jsonl", "");
  const char* answer_ = nullptr;
  int64_t number_ = 0;
  double rate_ = 0;
  HeldContext context_;
  HeldGraph graph_, layers_;
  HeldModel gpt_, own_, clone_;
  HeldRecipe recipe_;
  HeldTensor tensor_, wrapped_, taken_;
  HeldGemm gemm_;
  HeldLossScaler loss_scaler_;
  HeldOptimizer optimizer_;
  HeldAccumulator accumulator_;
  CheckpointFolder folder_;
  HeldCheckpoint checkpoint_;
  HeldCommunicator ranks_[2];
  HeldPacked packed_;
  HeldSchedule schedule_;
  HeldSampler sampler_;
  HeldDataParallel data_parallel_;
  HeldShardedOptimizer sharded_;
  st_pending* pending_ = nullptr;
  int32_t is_done_ = 0;
  HeldData text_data_, train_, validation_, arrays_, made_;
  HeldTrainer on_text_, on_rows_;
  HeldPredictor writer_, predictor_;
  TokenBatch batch_{3, 5};
  DLManagedTensor theirs_{};
  const int64_t rows_dims_[2] = {kRows, 1}, weight_dims_[2] = {1, 8};
  float weight_[8] = {}, own_weight_[8] = {}, own_gradient_[8] = {}, predicted_[kRows] = {};
  const st_view weight_view_ = {ST_F32, 2, weight_dims_, nullptr, weight_, sizeof weight_};
  int64_t values_dims_[1] = {8};
};

void Life::begin() {
  CALL(st_require(0, 1));
  CALL(st_version(&answer_));
  CALL(st_features(&answer_));
  CALL(st_recipe_keys(&answer_));
  auto options = filled(st_context_options_init);
  options.threads = 2;
  options.log = LendingHost::log;
  options.parallel = LendingHost::parallel;
  options.alloc = LendingHost::alloc;
  options.free = LendingHost::free;
  options.log_user = options.parallel_user = options.memory_user = &host_;
  CALL(st_context_create(&options, context_.out()));
  auto op = filled(st_op_callbacks_init);
  op.shape = LendingHost::shape;
  op.forward = LendingHost::forward;
  op.backward = LendingHost::backward;
  CALL(st_op_register(context_, "same", &op, &host_));
}

void Life::build_graphs() {
  CALL(st_graph_create(context_, graph_.out()));
  const int64_t column[] = {ST_BATCH, 1};
  st_value x = 0, y = 0, ends[2] = {0, 0};
  CALL(st_graph_input(graph_, "x", ST_F32, 2, column, &x));
  CALL(st_graph_input(graph_, "y", ST_F32, 2, column, &y));
  CALL(st_layer_linear(graph_, "first", x, R"({"outputs": 8})", &x));
  CALL(st_graph_op(graph_, "same", 1, &x, nullptr, 1, &x));
  CALL(st_graph_apply(graph_, "gelu", 1, &x, 0, nullptr, 1, &x));
  CALL(st_layer_mlp(graph_, "second", x, R"({"hidden": [8], "outputs": 1})", &x));
  CALL(st_graph_output(graph_, "prediction", x));
  const st_value pair[] = {x, y};
  CALL(st_graph_op(graph_, "mse", 2, pair, nullptr, 2, ends));
  CALL(st_graph_loss(graph_, ends[0]));
  CALL(st_graph_text(graph_, &answer_));

  CALL(st_graph_create(context_, layers_.out()));
  const int64_t tokens[] = {ST_BATCH, 4};
  auto info = filled(st_value_info_init);
  CALL(st_graph_scope(layers_, "body"));
  CALL(st_graph_input(layers_, "tokens", ST_I32, 2, tokens, &x));
  CALL(st_layer_embedding(layers_, "embedding", x, R"({"vocabulary": 9, "width": 8})", &x));
  CALL(st_layer_norm(layers_, "norm", x, nullptr, &x));
  CALL(st_layer_attention(layers_, "attention", x, R"({"heads": 2})", &x));
  CALL(st_layer_dropout(layers_, "dropout", x, R"({"rate": 0.1})", &x));
  CALL(st_graph_scope_end(layers_));
  CALL(st_graph_value(layers_, x, &info));
  CALL(st_graph_parameter(layers_, "w", 2, weight_dims_, ST_INIT_NORMAL, 1, &y));
  const st_view values = {ST_F32, 1, values_dims_, nullptr, weight_, sizeof weight_};
  CALL(st_graph_parameter_values(layers_, "v", &values, 1, &y));
}

void Life::make_models() {
  auto parameter = filled(st_parameter_info_init);
  auto read = filled(st_read_report_init);
  CALL(st_model_create(graph_, 1, own_.out()));
  CALL(st_model_builtin(context_, "gpt", kSmallGpt, 1, gpt_.out()));
  CALL(st_model_parameter_count(gpt_, &number_));
  CALL(st_model_parameter(gpt_, 0, &parameter));
  CALL(st_model_write_file(gpt_, weights_.c_str(), &pending_));
  CALL(st_pending_wait(pending_, -1));
  CALL(st_pending_poll(pending_, &is_done_));
  CALL(st_pending_destroy(pending_));
  CALL(st_model_read_file(gpt_, weights_.c_str()));
  CALL(st_model_get(own_, "first.weight", &weight_view_));
  CALL(st_model_set(own_, "first.weight", &weight_view_));
  CALL(st_model_clone(own_, clone_.out()));
  CALL(st_model_blend(clone_, own_, 0.5));
  CALL(st_model_digest(clone_, &answer_));
  CALL(st_model_write(own_, LendingHost::write, &host_));
  CALL(st_model_read(clone_, LendingHost::read, &host_, nullptr, &read));
}

void Life::use_tensors() {
  st_view view{};
  CALL(st_tensor_create(context_, ST_F32, 2, rows_dims_, tensor_.out()));
  CALL(st_tensor_view(tensor_, &view));
  CALL(st_tensor_wrap(context_, &weight_view_, LendingHost::release, &host_, wrapped_.out()));
  DLManagedTensor* exported = nullptr;
  CALL(st_tensor_to_dlpack(tensor_, &exported));
  exported->deleter(exported);
  theirs_.dl_tensor = {weight_, {1, 0}, 1, {2, 32, 1}, values_dims_, nullptr, 0};
  theirs_.manager_ctx = &host_;
  theirs_.deleter = LendingHost::deleter;
  CALL(st_tensor_from_dlpack(context_, &theirs_, taken_.out()));
}

void Life::multiply() {
  constexpr int64_t kSize = 90;  // more than one task, so that the host's parallel-for runs
  const int64_t square[] = {kSize, kSize};
  std::vector<float> a(kSize * kSize, 0.5F), product(kSize * kSize);
  const auto bytes = static_cast<int64_t>(a.size() * sizeof(float));
  const st_view factor = {ST_F32, 2, square, nullptr, a.data(), bytes}, result = {ST_F32, 2, square, nullptr, product.data(), bytes};
  auto problem = filled(st_gemm_problem_init);
  auto info = filled(st_gemm_info_init);
  auto epilogue = filled(st_epilogue_init);
  problem.m = problem.n = problem.k = kSize;
  epilogue.activation = ST_ACTIVATION_GELU_ERF;
  CALL(st_gemm_plan_create(context_, &problem, nullptr, gemm_.out()));
  CALL(st_gemm_pack(gemm_, &factor, packed_.out()));
  CALL(st_gemm_repack(packed_, &factor));
  CALL(st_gemm_run(gemm_, 1, &factor, &factor, 0, &result, &epilogue));
  CALL(st_gemm_run_packed(gemm_, 1, &factor, packed_, 1, &result, nullptr));
  CALL(st_gemm_plan_info(gemm_, &info));
}

void Life::scale_a_loss() {
  double scale = 0;
  int32_t is_so = 0;
  float values[8] = {1, 2, 3};
  const st_view gradient = {ST_F32, 1, values_dims_, nullptr, values, sizeof values};
  auto options = filled(st_loss_scaler_options_init);
  CALL(st_loss_scaler_create(context_, &options, loss_scaler_.out()));
  CALL(st_loss_scaler_scale(loss_scaler_, &scale));
  CALL(st_loss_scaler_unscale(loss_scaler_, 1, &gradient, &is_so));
  CALL(st_loss_scaler_step(loss_scaler_, &is_so));
  CALL(st_loss_scaler_update(loss_scaler_, &is_so));
  CALL(st_loss_scaler_state(loss_scaler_, &answer_));
  CALL(st_loss_scaler_restore(loss_scaler_, R"({"scale":8.0,"good_steps":0})"));
}

void Life::optimize() {
  double norm = 0, scale = 0;
  const st_named_view* state = nullptr;
  float gradients[8] = {1, 2, 3};
  const st_view gradient = {ST_F32, 1, values_dims_, nullptr, gradients, sizeof gradients};
  const st_named_view weight = {"w", {ST_F32, 1, values_dims_, nullptr, own_weight_, sizeof own_weight_}};
  auto report = filled(st_optimizer_report_init);
  CALL(st_clip_norm(context_, 1, &gradient, 1, &norm));
  CALL(st_optimizer_create(context_, R"({"optimizer": "lion"})", 1, &weight, optimizer_.out()));
  CALL(st_optimizer_step(optimizer_, 1, &gradient, &report));
  CALL(st_loss_scaler_scale(loss_scaler_, &scale));
  CALL(st_optimizer_step_scaled(optimizer_, loss_scaler_, 1, &gradient, &report));
  CALL(st_loss_scaler_update(loss_scaler_, nullptr));
  uint16_t weight_in_bf16[16] = {};
  const st_view copy = {ST_BF16, 1, values_dims_, nullptr, weight_in_bf16, sizeof weight_in_bf16};
  CALL(st_optimizer_keep_copies(optimizer_, 1, &copy));
  CALL(st_optimizer_step(optimizer_, 1, &gradient, &report));
  CALL(st_optimizer_keep_copies(optimizer_, 0, nullptr));
  CALL(st_optimizer_set(optimizer_, "lr", "0.01"));
  CALL(st_optimizer_state_views(optimizer_, &number_, &state));
}

void Life::accumulate() {
  double weight = 0;
  int32_t is_so = 0;
  const st_named_view* state = nullptr;
  const st_view gradient = {ST_F32, 1, values_dims_, nullptr, own_gradient_, sizeof own_gradient_};
  CALL(st_accumulator_create(context_, 1, 1, &gradient, accumulator_.out()));
  CALL(st_accumulator_set_steps(accumulator_, 2));
  CALL(st_accumulator_reset(accumulator_));
  CALL(st_accumulator_add(accumulator_, 3));
  CALL(st_accumulator_add(accumulator_, 0));
  CALL(st_accumulator_should_step(accumulator_, &is_so));
  CALL(st_accumulator_weight(accumulator_, &weight));
  CALL(st_accumulator_state_views(accumulator_, &number_, &state));
}

void Life::open_data() {
  double loss = 0;
  CALL(st_data_files(context_, text_.c_str(), R"({"context": 8})", text_data_.out()));
  CALL(st_data_split(text_data_, 0.2, 0, train_.out(), validation_.out()));
  CALL(st_data_bigram_loss(train_, validation_, &loss));
  CALL(st_data_vocabulary(train_, &number_));
  CALL(st_data_arrays(context_, kSineRows, 2, host_.rows.views, LendingHost::release, &host_, arrays_.out()));
  CALL(st_data_callback(context_, kSineRows, 2, kSineFields, LendingHost::fill, LendingHost::release, &host_, made_.out()));
  CALL(st_data_rows(made_, &number_));
}

void Life::train_on_text() {
  auto evaluation = filled(st_evaluation_init);
  CALL(st_recipe_create(R"({"batch": 3, "warmup": 3, "lr": 0.001})", recipe_.out()));
  CALL(st_recipe_set(recipe_, "lr", "0.0003"));
  CALL(st_recipe_get(recipe_, "lr", &answer_));
  CALL(st_recipe_json(recipe_, &answer_));
  CALL(st_trainer_create(gpt_, recipe_, train_, on_text_.out()));
  CALL(st_trainer_log(on_text_, log_.c_str()));
  CALL(st_trainer_step(on_text_, 0, nullptr, nullptr));
  CALL(st_trainer_step(on_text_, 2, batch_.views(), nullptr));
  CALL(st_trainer_run(on_text_, 4, LendingHost::on_step, &host_));
  CALL(st_trainer_evaluate(on_text_, validation_, &evaluation));
  CALL(st_trainer_log_end(on_text_, evaluation.loss));
  CALL(st_trainer_write_report(on_text_, page_.c_str(), nullptr));
  CALL(st_trainer_stop(on_text_));
  CALL(st_trainer_run(on_text_, 9, nullptr, nullptr));
  CALL(st_trainer_cancel(on_text_));
  refused("st_trainer_step that was cancelled", st_trainer_step(on_text_, 0, nullptr, nullptr));
}

void Life::train_on_rows() {
  auto evaluation = filled(st_evaluation_init);
  CALL(st_recipe_set(recipe_, "batch", "4"));
  CALL(st_recipe_set(recipe_, "ema_decay", "0.9"));
  CALL(st_trainer_create(own_, recipe_, made_, on_rows_.out()));
  CALL(st_trainer_step(on_rows_, 0, nullptr, nullptr));
  int32_t done = 0;
  while (done == 0) CALL(st_trainer_advance(on_rows_, 0, nullptr, 1000, &done, nullptr));
  CALL(st_trainer_evaluate(on_rows_, made_, &evaluation));
  CALL(st_trainer_evaluate(on_rows_, arrays_, &evaluation));
  CALL(st_trainer_gradient(on_rows_, "first.weight", &weight_view_));
  CALL(st_trainer_evaluate_average(on_rows_, arrays_, &evaluation));
  CALL(st_trainer_average(on_rows_, "first.weight", &weight_view_));
  CALL(st_trainer_use_average(on_rows_));
  CALL(st_trainer_set(on_rows_, "lr", "0.002"));
  CALL(st_trainer_get(on_rows_, "lr", &answer_));
  CALL(st_trainer_set_schedule(on_rows_, LendingHost::learning_rate, LendingHost::release, &host_));
  CALL(st_trainer_step(on_rows_, 0, nullptr, nullptr));
  CALL(st_schedule_create(R"({"schedule": "cosine", "lr_steps": 100})", schedule_.out()));
  CALL(st_schedule_at(schedule_, 50, &rate_));
  auto sampling = filled(st_distributed_sampler_options_init);
  int64_t rows[2] = {}, all = 0;
  CALL(st_distributed_sampler_create(8, &sampling, sampler_.out()));
  CALL(st_distributed_sampler_next(sampler_, 2, rows, &number_, &all));
  CALL(st_distributed_sampler_set_epoch(sampler_, 3));
  CALL(st_distributed_sampler_cursor(sampler_, &number_));
  CALL(st_distributed_sampler_set_cursor(sampler_, number_));
}

void Life::compute_the_loss() {
  const st_named_view batch[] = {{"x", {ST_F32, 2, rows_dims_, nullptr, host_.rows.x.data(), 4 * kRows}},
                                 {"y", {ST_F32, 2, rows_dims_, nullptr, host_.rows.y.data(), 4 * kRows}}};
  const st_named_view* outputs = nullptr;
  CALL(st_trainer_forward(on_rows_, 2, batch, &number_, &outputs));
  CALL(st_trainer_backward(on_rows_, 0, nullptr));
  CALL(st_trainer_apply(on_rows_, nullptr));
}

void Life::save_and_resume() {
  const std::string cut = folder_.path() + ".cut", file = folder_.in("weights.safetensors");
  const st_named_view own = {"w", {ST_F32, 1, values_dims_, nullptr, own_weight_, sizeof own_weight_}};
  auto options = filled(st_checkpoint_options_init);
  auto report = filled(st_load_report_init);
  auto progress = filled(st_save_progress_init);
  CALL(st_checkpoint_create(context_, folder_.c_str(), &options, checkpoint_.out()));
  CALL(st_checkpoint_save(checkpoint_, 1, 1, &own, R"({"who": "a guest"})", &pending_));
  CALL(st_pending_wait(pending_, -1));
  CALL(st_pending_destroy(pending_));
  CALL(st_checkpoint_load(checkpoint_, nullptr, 1, &own, nullptr, &report));
  CALL(st_trainer_save(on_rows_, checkpoint_, nullptr, nullptr));
  CALL(st_trainer_save_every(on_rows_, checkpoint_, 1, 0));
  CALL(st_trainer_step(on_rows_, 0, nullptr, nullptr));
  CALL(st_trainer_save_every(on_rows_, nullptr, 0, 0));
  CALL(st_checkpoint_wait(checkpoint_, -1));
  CALL(st_checkpoint_progress(checkpoint_, &progress));
  CALL(st_checkpoint_list(checkpoint_, &answer_));
  CALL(st_checkpoint_inspect(checkpoint_, nullptr, &answer_));
  CALL(st_checkpoint_verify(checkpoint_, nullptr, &answer_));
  CALL(st_checkpoint_hash(checkpoint_, nullptr, &answer_));
  CALL(st_checkpoint_reshard(checkpoint_, nullptr, cut.c_str(), 2));
  CALL(st_checkpoint_export(checkpoint_, nullptr, file.c_str(), 0));
  CALL(st_trainer_resume(on_rows_, checkpoint_, nullptr, nullptr, &report));
  CALL(st_model_load(own_, checkpoint_, nullptr, nullptr, &report));
  std::filesystem::remove_all(cut);
}

void Life::update_in_shards(st_communicator* alone) {
  auto report = filled(st_optimizer_report_init);
  auto options = filled(st_sharded_optimizer_options_init);
  options.stage = 2;
  float w[] = {1, 2}, g[] = {0.5F, -0.5F};
  uint16_t half[2] = {};
  const int64_t two[] = {2};
  const st_named_view weight = {"w", {ST_F32, 1, two, nullptr, w, sizeof w}};
  const st_view gradient = {ST_F32, 1, two, nullptr, g, sizeof g}, copy = {ST_BF16, 1, two, nullptr, half, sizeof half};
  double scale = 0;
  int32_t skipped = 0;
  const st_named_view* state = nullptr;
  CALL(st_sharded_optimizer_create(alone, R"({"optimizer": "lion"})", 1, &weight, &options, sharded_.out()));
  CALL(st_sharded_optimizer_gradient_ready(sharded_, 0, &gradient));
  CALL(st_sharded_optimizer_step(sharded_, 0, nullptr, &report));
  CALL(st_loss_scaler_scale(loss_scaler_, &scale));
  CALL(st_sharded_optimizer_step_scaled(sharded_, loss_scaler_, 1, &gradient, &report));
  CALL(st_loss_scaler_update(loss_scaler_, &skipped));
  CALL(st_sharded_optimizer_keep_copies(sharded_, 1, &copy));
  CALL(st_sharded_optimizer_set(sharded_, "lr", "0.01"));
  CALL(st_sharded_optimizer_gather_state(sharded_, 0, &number_, &state));
  CALL(st_sharded_optimizer_load_state(sharded_, number_, state));
  CALL(st_sharded_optimizer_destroy(sharded_));
  *sharded_.out() = nullptr;
}

void Life::exchange() {
  const int64_t whole_dims[] = {8}, share_dims[] = {4};
  float values[2][20] = {};
  HeldPending pending;
  int64_t begin = 0;
  int32_t rank = 0;
  st_communicator* made[2] = {};
  CALL(st_communicator_local(context_, 2, nullptr, made));
  for (int i = 0; i < 2; ++i) *ranks_[i].out() = made[i];
  CALL(st_communicator_rank(ranks_[1], &rank));
  CALL(st_communicator_size(ranks_[1], &rank));
  CALL(st_communicator_share(ranks_[1], 8, 1, &begin, &number_));
  st_view whole[2], other[2], share[2];
  for (int i = 0; i < 2; ++i) {
    whole[i] = {ST_F32, 1, whole_dims, nullptr, values[i], 32};
    other[i] = {ST_F32, 1, whole_dims, nullptr, values[i] + 8, 32};
    share[i] = {ST_F32, 1, share_dims, nullptr, values[i] + 16, 16};
  }
// Ours in the background, and the other rank's.
#define BOTH(ours, theirs)                        \
  CALL(ours);                                     \
  CALL(theirs);                                   \
  call("its wait", st_pending_wait(pending, -1)); \
  pending.reset()
  BOTH(st_communicator_all_reduce(ranks_[0], "g", &whole[0], ST_REDUCE_MEAN, pending.out()),
       st_communicator_all_reduce(ranks_[1], "g", &whole[1], ST_REDUCE_MEAN, nullptr));
  BOTH(st_communicator_reduce_scatter(ranks_[0], "g", &whole[0], &share[0], ST_REDUCE_SUM, pending.out()),
       st_communicator_reduce_scatter(ranks_[1], "g", &whole[1], &share[1], ST_REDUCE_SUM, nullptr));
  BOTH(st_communicator_all_gather(ranks_[0], "g", &share[0], &whole[0], pending.out()),
       st_communicator_all_gather(ranks_[1], "g", &share[1], &whole[1], nullptr));
  BOTH(st_communicator_all_to_all(ranks_[0], "g", &whole[0], &other[0], pending.out()),
       st_communicator_all_to_all(ranks_[1], "g", &whole[1], &other[1], nullptr));
  BOTH(st_communicator_broadcast(ranks_[0], "w", &whole[0], 1, pending.out()),
       st_communicator_broadcast(ranks_[1], "w", &whole[1], 1, nullptr));
  BOTH(st_communicator_send(ranks_[0], "w", &whole[0], 1, pending.out()), st_communicator_receive(ranks_[1], "w", &whole[1], 0, nullptr));
  BOTH(st_communicator_barrier(ranks_[0], nullptr, pending.out()), st_communicator_barrier(ranks_[1], nullptr, nullptr));
#undef BOTH
  CALL(st_communicator_sent_bytes(ranks_[0], &number_));
  CALL(st_communicator_flight_record(ranks_[0], &answer_));
  CALL(st_communicator_abort(ranks_[0], "enough"));
  refused("st_communicator_barrier of a group that is over", st_communicator_barrier(ranks_[1], nullptr, nullptr));
  HeldCommunicator alone;
  CALL(st_communicator_processes(context_, weights_.c_str(), 0, 1, nullptr, alone.out()));
  HeldTrainer of_group;
  CALL(st_trainer_create_in_group(own_, recipe_, made_, alone, of_group.out()));
  auto exchanging = filled(st_data_parallel_options_init);
  const st_named_view gradient = {"g", whole[0]};
  CALL(st_data_parallel_create(alone, 1, &gradient, &exchanging, data_parallel_.out()));
  CALL(st_data_parallel_no_sync(data_parallel_, 0));
  CALL(st_data_parallel_gradient_ready(data_parallel_, 0));
  CALL(st_data_parallel_synchronize(data_parallel_));
  CALL(st_data_parallel_destroy(data_parallel_));
  *data_parallel_.out() = nullptr;
  update_in_shards(alone);
  alone.reset();
  refused("st_communicator_env without a launcher", st_communicator_env(context_, nullptr, alone.out()));
  refused("st_communicator_host of no such plug-in", st_communicator_host(context_, "none", nullptr, nullptr, alone.out()));
  auto transport = filled(st_transport_callbacks_init);
  transport.write = [](void*, int32_t, const void*, int64_t, int64_t*) -> st_status { return ST_IO; };
  transport.read = [](void*, int32_t, void*, int64_t, int64_t*) -> st_status { return ST_IO; };
  CALL(st_communicator_callbacks(context_, 0, 1, &transport, nullptr, nullptr, alone.out()));  // to nobody
}

void Life::predict() {
  auto generate = filled(st_generate_options_init);
  generate.tokens = 3;
  const int32_t prompt = 5;
  const st_named_view in = {"x", {ST_F32, 2, rows_dims_, nullptr, host_.rows.x.data(), 4 * kRows}};
  const st_named_view out = {"prediction", {ST_F32, 2, rows_dims_, nullptr, predicted_, sizeof predicted_}};
  CALL(st_predictor_create(gpt_, nullptr, writer_.out()));
  CALL(st_predictor_generate(writer_, 1, &prompt, &generate, LendingHost::on_token, &host_));
  CALL(st_predictor_create(own_, nullptr, predictor_.out()));
  CALL(st_predictor_run(predictor_, 1, &in, 1, &out));
  CALL(st_predictor_refresh(predictor_));
}

void Life::look() {
  auto stats = filled(st_memory_stats_init);
  CALL(st_trainer_digest(on_rows_, &answer_));
  CALL(st_trainer_plan(on_rows_, &answer_));
  CALL(st_trainer_explain(on_rows_, &answer_));
  CALL(st_trainer_timeline(on_rows_, &answer_));
  CALL(st_live_handles(nullptr, &number_));
  CALL(st_context_memory(context_, &stats));
  CALL(st_memory_role_name(ST_MEMORY_STASH, &answer_));
  CALL(st_context_reset_peak(context_));
  CALL(st_context_trim(context_));
  CALL(st_context_cancel(context_));
}

void Life::fail() {
  auto info = filled(st_error_info_init);
  refused("st_require of another version", st_require(99, 0));
  refused("st_recipe_set of no number", st_recipe_set(recipe_, "lr", "many"));
  refused("st_trainer_step with too few views", st_trainer_step(on_text_, 1, batch_.views(), nullptr));
  CALL(st_last_error_info(&info));
}

void Life::end() {
#define DESTROY(destroy, held)   \
  call(#destroy, destroy(held)); \
  *held.out() = nullptr
  DESTROY(st_predictor_destroy, predictor_);
  DESTROY(st_trainer_destroy, on_rows_);
  DESTROY(st_trainer_destroy, on_text_);
  DESTROY(st_data_destroy, made_);
  DESTROY(st_data_destroy, arrays_);
  DESTROY(st_recipe_destroy, recipe_);
  DESTROY(st_tensor_destroy, wrapped_);
  DESTROY(st_tensor_destroy, taken_);
  DESTROY(st_gemm_plan_destroy, gemm_);
  DESTROY(st_loss_scaler_destroy, loss_scaler_);
  DESTROY(st_optimizer_destroy, optimizer_);
  DESTROY(st_accumulator_destroy, accumulator_);
  DESTROY(st_checkpoint_destroy, checkpoint_);
  DESTROY(st_communicator_destroy, ranks_[0]);
  DESTROY(st_communicator_destroy, ranks_[1]);
  DESTROY(st_packed_destroy, packed_);
  DESTROY(st_schedule_destroy, schedule_);
  DESTROY(st_distributed_sampler_destroy, sampler_);
  DESTROY(st_model_destroy, clone_);
  DESTROY(st_graph_destroy, layers_);
  DESTROY(st_context_destroy, context_);
#undef DESTROY
}

#undef CALL

}  // namespace

void live_a_life(const LifeWatch& watch) { Life(watch).live(); }

}  // namespace st::test
