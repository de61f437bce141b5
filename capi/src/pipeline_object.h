// A host's stages on a rank.
#pragma once

#include <scaletrain/pipeline.h>

#include <memory>
#include <vector>

#include "communicator_object.h"
#include "parts/pipeline.h"

namespace st::capi {

struct PipelineObject final : Object {
  std::shared_ptr<CommunicatorObject> group;
  st_pipeline_callbacks callbacks{};
  void* user = nullptr;
  std::vector<PipelinePart> parts;  // this rank's chunks
  std::unique_ptr<Pipeline> pipeline;
};

ST_HANDLE(st_pipeline, pipeline, PipelineObject)

}  // namespace st::capi
