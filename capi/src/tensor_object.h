// A tensor over memory of its own or the host's, in the memory of the host or of its context's device.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>

#include "object_handles.h"
#include "parts/context.h"
#include "strided_layout.h"

namespace st::capi {

struct TensorObject final : Object {
  StridedLayout layout;
  void* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<Context> device;  // whose memory it is; null: the host's memory
  std::shared_ptr<void> owner;      // of the memory; shared with each DLPack export
};

ST_HANDLE(st_tensor, tensor, TensorObject)

}  // namespace st::capi
