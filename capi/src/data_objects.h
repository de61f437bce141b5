// Data sets and the sampler that shares their rows out.
#pragma once

#include <scaletrain/scaletrain.h>

#include <memory>

#include "data/dataset.h"
#include "data/distributed_sampler.h"
#include "object_handles.h"

namespace st::capi {

struct DataObject final : Object {
  std::shared_ptr<const TokenSource> source;  // null: not from files; then there is no range
  TokenRange range;
  int64_t context = 0;
  std::shared_ptr<const Dataset> dataset;
};

struct DistributedSamplerObject final : Object {
  explicit DistributedSamplerObject(const SamplerOptions& options) : sampler(options) {}
  DistributedSampler sampler;
};

ST_HANDLE(st_data, data, DataObject)
ST_HANDLE(st_distributed_sampler, distributed_sampler, DistributedSamplerObject)

}  // namespace st::capi
