// A tensor over memory of its own or the host's.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>

#include "object_handles.h"
#include "strided_layout.h"

namespace st::capi {

struct TensorObject final : Object {
  StridedLayout layout;
  void* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<void> owner;  // of the memory; shared with each DLPack export
};

ST_HANDLE(st_tensor, tensor, TensorObject)

}  // namespace st::capi
