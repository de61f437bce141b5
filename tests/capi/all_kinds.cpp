#include "all_kinds.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace st::test {
namespace {

constexpr const char* kWritten[] = {"weights.safetensors", "report.html", "second_log.jsonl", "export.safetensors"};

st_status append(void* user, const void* bytes, int64_t count) {
  static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), static_cast<size_t>(count));
  return ST_OK;
}

/// Makes st_communicator_env see a launch of one rank. Call it before threads exist that could read the environment.
bool launched_alone() {
  const std::string port = std::to_string(1 + getpid() % 65535);
  const std::pair<const char*, const char*> variables[] = {{"RANK", "0"},
                                                           {"WORLD_SIZE", "1"},
                                                           {"LOCAL_RANK", "0"},
                                                           {"LOCAL_WORLD_SIZE", "1"},
                                                           {"MASTER_ADDR", "127.0.0.1"},
                                                           {"MASTER_PORT", port.c_str()}};
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  return true;
}

}  // namespace

st_status make_pipeline(st_communicator* communicator, st_pipeline** pipeline) {
  auto callbacks = filled(st_pipeline_callbacks_init);
  callbacks.forward = callbacks.backward_input = [](void*, const st_stage_work*) { return st_status{ST_OK}; };
  const st_op_type type = {ST_F32, 1, {4}};
  return st_pipeline_create(communicator, "1f1b", 1, &type, &type, &callbacks, nullptr, pipeline);
}

RankArrays::RankArrays(int32_t number)
    : rank(number),
      whole{ST_F32, 1, &dims[0], nullptr, values.data(), 64},
      other{ST_F32, 1, &dims[0], nullptr, values.data() + 16, 64},
      share{ST_F32, 1, &dims[1], nullptr, values.data() + 32, 32} {}

AllKinds::AllKinds(const st_context_options* options)
    : run(source, options, R"({"batch": 3, "accumulate": 2, "warmup": 2, "dropout": 0.1, "ema_decay": 0.5})", kAllKindsGpt), beta(16) {
  EXPECT_TRUE(works(st_model_clone(run.model, other.out())));
  EXPECT_TRUE(works(st_predictor_create(run.model, nullptr, predictor.out())));
  EXPECT_TRUE(works(st_tensor_create(run.context, ST_F32, 1, beta_dims, tensor.out())));
  EXPECT_TRUE(works(st_tensor_to_dlpack(tensor, &managed)));
  make_graph();
  EXPECT_TRUE(works(st_model_write_file(run.model, path("first.safetensors").c_str(), pending.out())));
  make_gemm();
  EXPECT_TRUE(works(st_schedule_create(nullptr, schedule.out())));
  EXPECT_TRUE(works(st_distributed_sampler_create(8, nullptr, sampler.out())));
  EXPECT_TRUE(works(st_loss_scaler_create(run.context, nullptr, loss_scaler.out())));
  const st_named_view weight = {"w", {ST_F32, 1, beta_dims, nullptr, host_weight.data(), 64}};
  const st_view gradient = {ST_F32, 1, beta_dims, nullptr, host_gradient.data(), 64};
  EXPECT_TRUE(works(st_optimizer_create(run.context, nullptr, 1, &weight, optimizer.out())));
  EXPECT_TRUE(works(st_accumulator_create(run.context, 2, 1, &gradient, accumulator.out())));
  EXPECT_TRUE(works(st_model_builtin(run.context, "mlp", R"({"inputs": 1, "hidden": [1], "outputs": 1})", 1, planned.out())));
  EXPECT_TRUE(works(st_plan_create(planned, run.recipe, kPlannedMachine, plan.out())));
  for (const char* name : kWritten) std::filesystem::remove(path(name));
  EXPECT_TRUE(works(st_trainer_log(run.trainer, path("log.jsonl").c_str())));
  EXPECT_TRUE(works(st_trainer_step(run.trainer, 0, nullptr, nullptr)));
  make_checkpoint();
  make_communicators();
  view = {ST_F32, 1, beta_dims, nullptr, beta.data(), 64};
  room = {ST_F32, 1, beta_dims, nullptr, overwritten.data(), 64};
  named = {"x", view};
  EXPECT_TRUE(works(st_model_get(run.model, "final_norm.beta", &view)));
  EXPECT_TRUE(works(st_model_write(run.model, append, &weights)));
}

void AllKinds::give_back(DLManagedTensor* taken) {
  HeldContext context;  // the run's context may be gone
  EXPECT_TRUE(works(st_context_create(nullptr, context.out())));
  const auto tensor = hold<HeldTensor>(st_tensor_from_dlpack, context, taken);
}

AllKinds::~AllKinds() {
  if (managed != nullptr) give_back(managed);
}

/// Written once: another AllKinds may have the file mapped.
const std::string& AllKinds::source_file() {
  static const std::string path = text_file("all_kinds.txt", 600);
  return path;
}

void AllKinds::make_graph() {
  EXPECT_TRUE(works(st_graph_create(run.context, graph.out())));
  loss = sine_graph(graph);
  const int64_t row[] = {ST_BATCH, 4, 8};
  EXPECT_TRUE(works(st_graph_input(graph, "row", ST_F32, 1, row, &x)));
  EXPECT_TRUE(works(st_graph_input(graph, "tokens", ST_I32, 2, row, &tokens)));
  EXPECT_TRUE(works(st_graph_input(graph, "sequence", ST_F32, 3, row, &sequence)));
  EXPECT_TRUE(works(st_graph_scope(graph, "block")));
}

void AllKinds::make_gemm() {
  auto problem = filled(st_gemm_problem_init);
  problem.m = problem.n = problem.k = 4;
  square = {ST_F32, 2, square_dims, nullptr, beta.data(), 64};
  product_view = {ST_F32, 2, square_dims, nullptr, product.data(), 64};
  EXPECT_TRUE(works(st_gemm_plan_create(run.context, &problem, nullptr, gemm.out())));
  EXPECT_TRUE(works(st_gemm_pack(gemm, &square, packed.out())));
}

/// Saved once: the trainer of each AllKinds is the same.
void AllKinds::make_checkpoint() {
  static const CheckpointFolder saved;
  if (!std::filesystem::exists(saved.path())) {
    EXPECT_TRUE(works(st_checkpoint_create(run.context, saved.c_str(), nullptr, checkpoint.out())));
    EXPECT_TRUE(works(st_trainer_save(run.trainer, checkpoint, nullptr, nullptr)));
    checkpoint.reset();
  }
  std::filesystem::copy(saved.path(), folder.path(), std::filesystem::copy_options::recursive);
  auto options = filled(st_checkpoint_options_init);
  options.keep_last = 0;  // keep whatever the calls save
  EXPECT_TRUE(works(st_checkpoint_create(run.context, folder.c_str(), &options, checkpoint.out())));
}

void AllKinds::make_communicators() {
  static const bool launched = launched_alone();
  EXPECT_TRUE(launched);
  st_communicator* ranks[2] = {};
  EXPECT_TRUE(works(st_communicator_local(run.context, 2, nullptr, ranks)));
  *communicator.out() = ranks[0];
  *peer.out() = ranks[1];
  const st_named_view gradient = {"g", {ST_F32, 1, beta_dims, nullptr, host_gradient.data(), 64}};
  EXPECT_TRUE(works(st_communicator_local(run.context, 1, nullptr, alone.out())));
  EXPECT_TRUE(works(st_data_parallel_create(alone, 1, &gradient, nullptr, data_parallel.out())));
  auto stage_2 = filled(st_sharded_optimizer_options_init);
  stage_2.stage = 2;
  const st_named_view weight = {"w", {ST_F32, 1, beta_dims, nullptr, sharded_weight.data(), 64}};
  EXPECT_TRUE(works(st_sharded_optimizer_create(alone, nullptr, 1, &weight, &stage_2, sharded.out())));
  EXPECT_TRUE(works(make_pipeline(alone, pipeline.out())));
}

EachHandle AllKinds::handles() const {
  return {run.context, graph,       run.model, run.data,    run.recipe, run.trainer,  predictor, tensor,        pending, gemm,     packed,
          schedule,    loss_scaler, optimizer, accumulator, checkpoint, communicator, sampler,   data_parallel, sharded, pipeline, plan};
}
void AllKinds::place_views(int32_t of) {
  device = of;
  for (st_view* const each : {&square, &product_view, &view, &room, &named.view, &batch.views()[0].view, &batch.views()[1].view})
    each->device = of;
  for (RankArrays& rank : arrays) rank.whole.device = rank.other.device = rank.share.device = of;
}

AnyHandle AllKinds::of(std::string_view kind) const {
  for (size_t i = 0; i < kKindNames.size(); ++i)
    if (kKindNames[i] == kind) return AnyHandle(handles()[i]);
  ADD_FAILURE() << "no kind " << kind;
  return AnyHandle(nullptr);
}

std::string AllKinds::state() const {
  const char* lr = "";
  int64_t rows = 0, live = 0;
  EXPECT_TRUE(works(st_trainer_get(run.trainer, "lr", &lr)));
  std::string all = "lr " + std::string(lr);
  all += " " + run.digest();
  EXPECT_TRUE(works(st_data_rows(run.data, &rows)));
  EXPECT_TRUE(works(st_live_handles(nullptr, &live)));
  all += text_of(st_model_digest, run.model) + text_of(st_model_digest, other);
  all += text_of(st_loss_scaler_state, loss_scaler);
  for (const float w : host_weight) all += " " + std::to_string(w);
  for (const float w : sharded_weight) all += " " + std::to_string(w);
  const auto weight = asked<double>(st_accumulator_weight, accumulator);
  all += ", " + std::to_string(weight) + " tokens";
  all += text_of(st_checkpoint_list, checkpoint);
  const auto sent = asked<int64_t>(st_communicator_sent_bytes, communicator);
  all += ", sent " + std::to_string(sent);
  EXPECT_TRUE(works(st_distributed_sampler_cursor(sampler, &rows)));
  all += ", sampled " + std::to_string(rows);
  all += text_of(st_graph_text, graph) + text_of(st_recipe_json, run.recipe);
  all += " " + std::to_string(rows) + " rows, " + std::to_string(live) + " handles, " + std::to_string(callbacks) + " callbacks";
  if (std::filesystem::exists(new_folder.path())) all += ", a new folder";
  for (const char* name : kWritten)
    if (std::filesystem::exists(path(name))) all += std::string(", ") + name;
  return all;
}

}  // namespace st::test
