// A call under way.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>

#include "base/pending.h"
#include "object_handles.h"

namespace st::capi {

struct PendingObject final : Object {
  std::shared_ptr<Pending> work;
};

ST_HANDLE(st_pending, pending, PendingObject)

}  // namespace st::capi
