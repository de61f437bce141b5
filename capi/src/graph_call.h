// Shared by the calls that build a graph: conversion of a host's ids, shapes and names, and propagation of errors.
#pragma once

#include <string>
#include <vector>

#include "graph_object.h"
#include "guard.h"

namespace st::capi {

/// The value of an id. Id 0 rethrows the graph's first error, which so propagates.
Value value_of(const GraphObject& graph, st_value id);
std::vector<Value> values_of(const GraphObject& graph, int32_t n, const st_value* ids);
Shape shape_of(int32_t rank, const int64_t* dims);
std::string name_given(const char* name);

/// Counts the parameter elements in the slots from `first_slot` on, so that a graph too large for any memory is refused while it is built.
void count_parameters(GraphObject& graph, size_t first_slot);

/// Restores a graph when a call runs out of memory halfway: that is not the graph's error, so the host may repeat the call. Building calls
/// only append, so undoing only removes and needs no memory.
class Undo {
 public:
  explicit Undo(GraphObject& graph);
  void run() noexcept;

 private:
  GraphObject& graph_;
  size_t nodes_, slots_, regions_, outputs_, scopes_, values_;
  StepSlotIds step_;
  double parameter_elements_;
};

/// A call that creates values. On an error their ids are 0, the graph keeps its first error, and the status reports it. `values` may
/// overlap the inputs, so it is written last.
template <class Body>
st_status build(st_graph* graph, const char* call, int32_t m, st_value* values, const Body& body) {
  std::vector<st_value> ids;
  const st_status status = guard(
      [&] {
        const auto g = find(graph);
        Undo undo(*g);
        try {
          check(m == 0 || values != nullptr, "values is NULL");
          Builder b(g->program, 0);
          b.set_region(g->scopes.empty() ? 0 : g->scopes.back());
          const std::vector<Value> made = body(*g, b);
          for (int32_t i = 0; i < m && i < static_cast<int32_t>(made.size()); ++i) {
            g->values.push_back(made[static_cast<size_t>(i)]);
            ids.push_back(static_cast<st_value>(g->values.size()));
          }
        } catch (const Error& error) {
          Error named(error.code(), text(call, ": ", error.message()));
          named.place = error.place;
          if (!g->first_error) g->first_error = named;
          throw named;
        } catch (...) {
          undo.run();
          throw;
        }
      },
      call);
  for (int32_t i = 0; values != nullptr && i < m; ++i)
    values[i] = i < static_cast<int32_t>(ids.size()) && status == ST_OK ? ids[static_cast<size_t>(i)] : 0;
  return status;
}

}  // namespace st::capi
