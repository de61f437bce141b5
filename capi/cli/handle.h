// Owning wrappers for handles of the C ABI.
#pragma once

#include <memory>

#include "failure.h"

namespace cli {

template <class T, st_status (*Destroy)(T*)>
struct Destroyer {
  void operator()(T* handle) const { Destroy(handle); }
};

using Checkpoint = std::unique_ptr<st_checkpoint, Destroyer<st_checkpoint, st_checkpoint_destroy>>;
using Communicator = std::unique_ptr<st_communicator, Destroyer<st_communicator, st_communicator_destroy>>;
using Context = std::unique_ptr<st_context, Destroyer<st_context, st_context_destroy>>;
using Data = std::unique_ptr<st_data, Destroyer<st_data, st_data_destroy>>;
using Gemm = std::unique_ptr<st_gemm, Destroyer<st_gemm, st_gemm_plan_destroy>>;
using LossScaler = std::unique_ptr<st_loss_scaler, Destroyer<st_loss_scaler, st_loss_scaler_destroy>>;
using Model = std::unique_ptr<st_model, Destroyer<st_model, st_model_destroy>>;
using Optimizer = std::unique_ptr<st_optimizer, Destroyer<st_optimizer, st_optimizer_destroy>>;
using Packed = std::unique_ptr<st_packed, Destroyer<st_packed, st_packed_destroy>>;
using Pending = std::unique_ptr<st_pending, Destroyer<st_pending, st_pending_destroy>>;
using Plan = std::unique_ptr<st_plan, Destroyer<st_plan, st_plan_destroy>>;
using Predictor = std::unique_ptr<st_predictor, Destroyer<st_predictor, st_predictor_destroy>>;
using Recipe = std::unique_ptr<st_recipe, Destroyer<st_recipe, st_recipe_destroy>>;
using Trainer = std::unique_ptr<st_trainer, Destroyer<st_trainer, st_trainer_destroy>>;

/// make<Model>(st_model_builtin, context, "gpt", json, seed): returns the handle that the call writes to its last argument.
template <class Handle, class Create, class... Arguments>
Handle make(Create create, Arguments... arguments) {
  typename Handle::pointer handle = nullptr;
  ask(create(arguments..., &handle));
  return Handle(handle);
}

/// text(st_recipe_json, recipe): returns the text or number that the call writes to its last argument.
template <class Get, class... Arguments>
const char* text(Get get, Arguments... arguments) {
  const char* answer = nullptr;
  ask(get(arguments..., &answer));
  return answer;
}

template <class Get, class... Arguments>
int64_t number(Get get, Arguments... arguments) {
  int64_t answer = 0;
  ask(get(arguments..., &answer));
  return answer;
}

}  // namespace cli
