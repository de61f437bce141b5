#include "api_calls.h"

#include "call_arguments.h"
#include "host_callbacks.h"

namespace st::fuzz {
namespace {

void destroy_something(World& world) {
  switch (world.bytes.next() % 21) {
    case 0:
      return world.destroy("st_context_destroy", world.contexts, st_context_destroy, world.handle(world.contexts));
    case 1:
      return world.destroy("st_graph_destroy", world.graphs, st_graph_destroy, world.handle(world.graphs));
    case 2:
      return world.destroy("st_model_destroy", world.models, st_model_destroy, world.handle(world.models));
    case 3:
      return world.destroy("st_data_destroy", world.data, st_data_destroy, world.handle(world.data));
    case 4:
      return world.destroy("st_recipe_destroy", world.recipes, st_recipe_destroy, world.handle(world.recipes));
    case 5:
      return world.destroy("st_trainer_destroy", world.trainers, st_trainer_destroy, world.handle(world.trainers));
    case 6:
      return world.destroy("st_predictor_destroy", world.predictors, st_predictor_destroy, world.handle(world.predictors));
    case 7:
      return world.destroy("st_gemm_plan_destroy", world.gemms, st_gemm_plan_destroy, world.handle(world.gemms));
    case 8:
      return world.destroy("st_packed_destroy", world.packed, st_packed_destroy, world.handle(world.packed));
    case 9:
      return world.destroy("st_schedule_destroy", world.schedules, st_schedule_destroy, world.handle(world.schedules));
    case 10:
      return world.destroy("st_loss_scaler_destroy", world.loss_scalers, st_loss_scaler_destroy, world.handle(world.loss_scalers));
    case 11:
      return world.destroy("st_optimizer_destroy", world.optimizers, st_optimizer_destroy, world.handle(world.optimizers));
    case 12:
      return world.destroy("st_accumulator_destroy", world.accumulators, st_accumulator_destroy, world.handle(world.accumulators));
    case 13:
      return world.destroy("st_checkpoint_destroy", world.checkpoints, st_checkpoint_destroy, world.handle(world.checkpoints));
    case 14:
      return world.destroy("st_communicator_destroy", world.communicators, st_communicator_destroy, world.handle(world.communicators));
    case 15:
      return world.destroy("st_distributed_sampler_destroy", world.samplers, st_distributed_sampler_destroy, world.handle(world.samplers));
    case 16:
      return world.destroy("st_data_parallel_destroy", world.data_parallels, st_data_parallel_destroy, world.handle(world.data_parallels));
    case 17:
      return world.destroy("st_sharded_optimizer_destroy", world.sharded_optimizers, st_sharded_optimizer_destroy,
                           world.handle(world.sharded_optimizers));
    case 18:
      return world.destroy("st_pipeline_destroy", world.pipelines, st_pipeline_destroy, world.handle(world.pipelines));
    case 19:
      return world.destroy("st_plan_destroy", world.plans, st_plan_destroy, world.handle(world.plans));
    default:
      return world.destroy("st_tensor_destroy", world.tensors, st_tensor_destroy, world.handle(world.tensors));
  }
}

}  // namespace

void set_up(World& world) {
  elsewhere().fill_behaviour = elsewhere().op_behaviour = elsewhere().alloc_failures = elsewhere().rate_behaviour = 0;
  elsewhere().trainer = nullptr;
  context_create(world);
  if (world.contexts.live.empty()) {  // its options were invalid
    st_context_options options{};
    CALL(st_context_options_init, &options, sizeof options);
    options.threads = 1;
    options.memory_limit = 1 << 24;
    MAKE(st_context_create, contexts, &options);
  }
  if (world.contexts.live.empty()) return;
  st_context* context = world.contexts.live[0];
  elsewhere().context = context;
  if (world.bytes.rarely(3)) op_register(world);
  MAKE(st_graph_create, graphs, context);
  if (world.graphs.live.empty()) return;
  sine_graph(world, world.graphs.live[0]);
  MAKE(st_model_create, models, world.graphs.live[0], 1);
  MAKE(st_recipe_create, recipes,
       world.bytes.rarely(3) ? R"({"batch": 4, "accumulate": 2, "warmup": 0, "ema_decay": 0.5})"
                             : R"({"batch": 4, "accumulate": 2, "warmup": 0})");
  if (world.bytes.rarely(3))
    MAKE(st_model_builtin, models, context, "gpt", R"({"layers":1,"width":8,"heads":2,"context":4,"vocabulary":256})", 1);
  if (world.bytes.rarely(2)) data_create(world);
  if (world.models.live.empty() || world.recipes.live.empty()) return;
  MAKE(st_trainer_create, trainers, world.models.live[0], world.recipes.live[0], nullptr);
  MAKE(st_predictor_create, predictors, world.bytes.pick(world.models.live), nullptr);
}

void call_something(World& world) {
  // Training calls are more frequent: they have most of the state.
  static constexpr std::array kCalls = {
      context_use,   library_use,     graph_op,         graph_leaf,       graph_layer, graph_use,         op_register,
      model_create,  model_use,       model_use,        data_create,      data_use,    recipe_use,        trainer_create,
      trainer_step,  trainer_step,    trainer_step,     trainer_step,     trainer_use, trainer_use,       predictor_use,
      predictor_use, tensor_use,      pending_use,      gemm_use,         gemm_use,    schedule_use,      loss_scaler_use,
      optimizer_use, accumulator_use, checkpoint_use,   communicator_use, sampler_use, data_parallel_use, sharded_optimizer_use,
      pipeline_use,  plan_use,        destroy_something};
  world.bytes.pick(kCalls)(world);
}

}  // namespace st::fuzz
