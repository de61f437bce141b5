// A graph as the host builds it.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "ir/build.h"
#include "object_handles.h"
#include "parts/context.h"

namespace st::capi {

/// The graph as the host builds it. Host ids are positions in `values`, from 1.
struct GraphObject final : Object {
  std::shared_ptr<Context> context;
  Program program;
  std::vector<RegionId> scopes;
  std::vector<Value> values;
  double parameter_elements = 0;  // a double shows "too many" where int64 would wrap around
  std::optional<Error> first_error;
};

ST_HANDLE(st_graph, graph, GraphObject)

}  // namespace st::capi
