#include "model/checkpoint_weights.h"

#include <algorithm>
#include <string_view>

namespace st {

std::vector<TensorRecord> weights_in(const Manifest& manifest) {
  const bool is_hosts = std::ranges::none_of(manifest.tensors, [](const LogicalTensor& t) { return t.kind == TensorKind::parameter; });
  const auto is_weight = [&](const LogicalTensor& tensor) {
    if (!is_hosts) return tensor.kind == TensorKind::parameter;
    const size_t dot = tensor.name.find('.');
    return dot == std::string::npos || manifest.find(std::string_view(tensor.name).substr(dot + 1)) == nullptr;
  };
  std::vector<TensorRecord> weights;
  for (const LogicalTensor& tensor : manifest.tensors)
    if (is_weight(tensor)) weights.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
  return weights;
}

}  // namespace st
