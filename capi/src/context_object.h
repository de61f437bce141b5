// A context: threads, memory, device.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>

#include "gradient_views.h"
#include "object_handles.h"
#include "parts/context.h"
#include "train/norm_clip.h"

namespace st::capi {

struct ContextObject final : Object {
  std::shared_ptr<Context> context;
  std::unique_ptr<NormClip> clip;  // created on first use
  GradientViews gradients;         // used by clip
};

ST_HANDLE(st_context, context, ContextObject)

}  // namespace st::capi
