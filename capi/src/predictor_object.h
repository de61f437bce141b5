// A predictor.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>

#include "communicator_object.h"
#include "model_object.h"
#include "object_handles.h"
#include "train/predictor.h"

namespace st::capi {

struct PredictorObject final : Object, Trimmable {
  void trim() override { predictor->trim(); }

  std::shared_ptr<ModelObject> model;
  std::shared_ptr<CommunicatorObject> group;  // of a sharded model: the ranks from which it gathers the shards
  std::unique_ptr<Predictor> predictor;
};

ST_HANDLE(st_predictor, predictor, PredictorObject)

}  // namespace st::capi
