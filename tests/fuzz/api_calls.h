// Calls every function of the C ABI with arguments that the input chooses; one file per noun.
#pragma once

#include "fuzz_world.h"

namespace st::fuzz {

/// One call of one function.
void call_something(World& world);

/// The start of a sequence: a context, a small regression and a small token model with their trainers, data and predictors.
void set_up(World& world);

// Parts of these two.
void context_create(World& world);
void context_use(World& world);
void library_use(World& world);
void data_create(World& world);
void data_use(World& world);
void gemm_use(World& world);
void loss_scaler_use(World& world);
void optimizer_use(World& world);
void accumulator_use(World& world);
void checkpoint_use(World& world);
void communicator_use(World& world);
void sampler_use(World& world);
void data_parallel_use(World& world);
void pipeline_use(World& world);
void plan_use(World& world);
void sharded_optimizer_use(World& world);
void graph_leaf(World& world);
void graph_layer(World& world);
void graph_op(World& world);
void graph_use(World& world);
void model_create(World& world);
void model_use(World& world);
void op_register(World& world);
void pending_use(World& world);
void predictor_use(World& world);
void recipe_use(World& world);
void schedule_use(World& world);
void tensor_use(World& world);
void trainer_create(World& world);
void trainer_step(World& world);
void trainer_use(World& world);

/// A valid regression with a prediction and a loss.
void sine_graph(World& world, st_graph* graph);

}  // namespace st::fuzz
