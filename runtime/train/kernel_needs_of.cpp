#include "train/kernel_needs_of.h"

#include <memory>
#include <vector>

namespace st {
namespace {

std::vector<Type> types_of(const Graph& graph, const std::vector<Value>& values) {
  std::vector<Type> types;
  types.reserve(values.size());
  for (const Value v : values) types.push_back(graph.type(v));
  return types;
}

}  // namespace

KernelNeeds kernel_needs_of(const Backend& backend, int threads) {
  const auto kernels = std::make_shared<const OpTable>(backend.kernels());
  return {.workspace = [kernels, threads](const Program&, const Section& section, const Node& node) -> int64_t {
            const auto& ask = (*kernels)[static_cast<size_t>(node.op)].workspace;
            return ask == nullptr ? 0 : ask(types_of(section.graph, node.in), node.out, node.attrs, threads);
          },
          .packing = [kernels](const Program&, const Section& section, const Node& node) -> int64_t {
            const auto& ask = (*kernels)[static_cast<size_t>(node.op)].packed_bytes;
            return ask == nullptr ? 0 : ask(types_of(section.graph, node.in), node.attrs);
          }};
}

}  // namespace st
