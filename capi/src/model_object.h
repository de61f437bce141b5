// A model.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>
#include <vector>

#include "communicator_object.h"
#include "object_handles.h"
#include "train/model.h"

namespace st::capi {

/// A step, a generation and a copy of a weight each hold the model's lease: none sees the weights half written.
struct ModelObject final : Object {
  std::shared_ptr<Model> model;
  std::weak_ptr<CommunicatorObject> group;  // whose ranks have it in pieces, if any; not kept: its port may be another's then
  ReadReport read;                          // of the last st_model_read, and its texts as the host sees them
  std::vector<const char*> missing, unexpected;
};

ST_HANDLE(st_model, model, ModelObject)

}  // namespace st::capi
