#include "graph_call.h"

#include <cmath>

namespace st::capi {
namespace {

constexpr double kMaxElements = 0x1p48;

}  // namespace

Value value_of(const GraphObject& graph, st_value id) {
  if (id == 0 && graph.first_error) throw *graph.first_error;  // propagate the first call that failed
  check(id != ST_NONE, "ST_NONE is given where a value is required; it may stand only for an optional input of an op");
  check(id > 0 && id <= static_cast<st_value>(graph.values.size()), "value ", id, " does not belong to this graph");
  return graph.values[static_cast<size_t>(id - 1)];
}

std::vector<Value> values_of(const GraphObject& graph, int32_t n, const st_value* ids) {
  check(n >= 0 && (n == 0 || ids != nullptr), "inputs is NULL or their number ", n, " negative");
  std::vector<Value> values;
  for (int32_t i = 0; i < n; ++i) values.push_back(value_of(graph, ids[i]));
  return values;
}

Shape shape_of(int32_t rank, const int64_t* dims) {
  check(rank >= 0 && rank <= kMaxDims, "rank is ", rank, "; it must be 0 to ", kMaxDims);
  check(rank == 0 || dims != nullptr, "dims is NULL with rank ", rank);
  const Shape shape(std::span<const int64_t>(dims, static_cast<size_t>(rank)));
  double elements = 1;  // of one row if the first dimension is the batch; a double shows "too many" where int64 would wrap around
  for (const int64_t dim : shape) elements *= std::abs(static_cast<double>(dim));
  check(elements <= kMaxElements, "shape ", shape, " has more elements than any memory holds");
  return shape;
}

std::string name_given(const char* name) {
  check(name != nullptr && *name != '\0', "name is NULL or empty");
  return name;
}

Undo::Undo(GraphObject& graph)
    : graph_(graph),
      nodes_(graph.program.sections[0].graph.nodes.size()),
      slots_(graph.program.slots.size()),
      regions_(graph.program.regions.size()),
      outputs_(graph.program.outputs.size()),
      scopes_(graph.scopes.size()),
      values_(graph.values.size()),
      step_(graph.program.step),
      parameter_elements_(graph.parameter_elements) {}

void Undo::run() noexcept {
  const auto shorten = [](auto& list, size_t size) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(size), list.end()); };
  Program& program = graph_.program;
  shorten(program.sections[0].graph.nodes, nodes_);
  shorten(program.slots, slots_);
  program.step = step_;
  shorten(program.regions, regions_);
  shorten(program.outputs, outputs_);
  shorten(graph_.scopes, scopes_);
  shorten(graph_.values, values_);
  graph_.parameter_elements = parameter_elements_;
}

void count_parameters(GraphObject& graph, size_t first_slot) {
  for (size_t i = first_slot; i < graph.program.slots.size(); ++i) {
    const Slot& slot = graph.program.slots[i];
    if (slot.role != Role::parameter) continue;
    double elements = 1;
    for (const int64_t dim : slot.type.shape) elements *= static_cast<double>(dim);
    graph.parameter_elements += elements;
  }
  check(graph.parameter_elements <= 0x1p53, "the graph's parameters have about ", graph.parameter_elements,
        " elements, more than any memory holds");
}

}  // namespace st::capi
