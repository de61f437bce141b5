// Model::load: weights out of a checkpoint.
#include <algorithm>
#include <vector>

#include "model/checkpoint_weights.h"
#include "model/model.h"
#include "model/tensor_load.h"

namespace st {

void Model::load(const CheckpointReader& reader, const ReadOptions& options, ReadReport& report) {
  report = {};
  const std::vector<TensorRecord> records = weights_in(reader.manifest());
  const WeightsMatch match = match_weights(records, program_, parameters_, options, reader.folder(), report, Code::invalid_argument);
  std::vector<TensorTarget> targets;
  for (size_t i = 0; i < records.size(); ++i)
    if (const SlotId id = match.parameters[i]; id >= 0)
      piece(id).each_run([&](int64_t in_whole, int64_t in_range, int64_t elements) {
        targets.push_back({.from = reader.manifest().find(records[i].name),
                           .first = in_whole,
                           .elements = elements,
                           .to = data(id) + in_range * bytes_of(slot(id).type.dtype),
                           .dtype = slot(id).type.dtype,
                           .may_hold_nan = false});
      });
  const auto workers = context_->make_workers(context_->threads());
  bool has_torn_state = false;  // the error says so
  const WeightsGate::Writer writer(gate_);
  load_tensors(reader, targets, *context_, *workers, nullptr, has_torn_state);
  report.read = std::ranges::count_if(match.parameters, [](SlotId id) { return id >= 0; });
  if (report.read == std::ssize(parameters_)) set_mixed(false);
}

}  // namespace st
