#include "checkpoint/export_weights.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"

namespace st {

void export_weights(const CheckpointReader& reader, const std::string& path, bool everything) {
  const Manifest& manifest = reader.manifest();
  const bool all = everything || std::ranges::all_of(manifest.tensors, [](const LogicalTensor& t) { return t.kind == TensorKind::host; });
  std::vector<TensorRecord> records;
  for (const LogicalTensor& t : manifest.tensors)
    if (all || t.kind == TensorKind::parameter) records.push_back({t.name, t.dtype, t.shape, 0});
  // transformers refuses a file without this key.
  write_safetensors_file(path, std::move(records), {{"format", "pt"}},
                         [&](const TensorRecord& record, const WriteBytes& write) { reader.stream(*manifest.find(record.name), write); });
}

}  // namespace st
