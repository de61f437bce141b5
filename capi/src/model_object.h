// A model.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>
#include <vector>

#include "communicator_object.h"
#include "model/model.h"
#include "object_handles.h"

namespace st::capi {

/// A step, a generation and a copy of a weight each hold the model's lease, so none sees half-written weights.
struct ModelObject final : Object {
  std::shared_ptr<Model> model;
  std::weak_ptr<CommunicatorObject> group;  // whose ranks the model is sharded across, if any; weak, so that its port is released
  ReadReport read;                          // of the last st_model_read, with its texts for the host
  std::vector<const char*> missing, unexpected;
};

ST_HANDLE(st_model, model, ModelObject)

}  // namespace st::capi
