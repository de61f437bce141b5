// A product's plan, and a matrix packed for it.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>
#include <optional>

#include "object_handles.h"
#include "parts/context.h"
#include "parts/device_gemm.h"
#include "parts/gemm_plan.h"
#include "usual_operands.h"

namespace st::capi {

struct GemmObject final : Object, std::enable_shared_from_this<GemmObject> {
  std::shared_ptr<Context> context;
  std::unique_ptr<GemmPlan> plan;         // null: on a device of its own memory
  std::unique_ptr<DeviceGemm> on_device;  // null: in the host's memory
  const GemmProblem& problem() const { return plan ? plan->choice().problem : on_device->problem(); }
  std::optional<UsualOperands> usual;
};

struct PackedObject final : Object {
  std::shared_ptr<GemmObject> gemm;  // the plan that packed it
  std::unique_ptr<PackedMatrix> b;
};

ST_HANDLE(st_gemm, gemm, GemmObject)
ST_HANDLE(st_packed, packed, PackedObject)

}  // namespace st::capi
