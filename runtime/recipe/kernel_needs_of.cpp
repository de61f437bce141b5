#include "recipe/kernel_needs_of.h"

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

KernelNeeds kernel_needs(const MachineProfile& machine) {
  return {.workspace = [machine](const Program&, const Section& section, const Node& node) -> int64_t {
            return workspace_need(machine, node.op, types_of(section.graph, node.in), node.out, node.attrs);
          },
          .packing = [machine](const Program&, const Section& section, const Node& node) -> int64_t {
            return packing_need(machine, node.op, types_of(section.graph, node.in), node.attrs);
          },
          .has_own_memory = machine.device == "cuda"};
}

KernelNeeds kernel_needs(const Backend& backend, int threads) {
  KernelNeeds needs = kernel_needs(profile_of(backend, threads));
  needs.has_own_memory = !backend.is_host_memory();
  return needs;
}

}  // namespace st
