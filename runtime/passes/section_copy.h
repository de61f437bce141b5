// Copies some nodes of a graph into another section, with what they read.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "ir/program.h"
#include "passes/stage_parts.h"

namespace st {

/// Loads, constants and views that a node reads are made again in the section, once; other values that are not copied there are brought.
class SectionCopy {
 public:
  /// Gives the value that stands in the section for one that is computed elsewhere.
  using Bring = std::function<Value(Value of_original)>;
  /// Appends a load's node, which it may change.
  using Load = std::function<Value(Node load)>;

  SectionCopy(const Graph& from, Graph& to, Bring bring, Load load)
      : from_(from), to_(to), bring_(std::move(bring)), load_(std::move(load)) {}

  Value at(Value v) {
    if (const auto found = map_.find(v); found != map_.end()) return found->second;
    Node node = from_[v.node];
    Value here;
    if (!is_made_anywhere(node)) {
      here = bring_(v);
    } else if (node.op == Op::load) {
      here = load_(std::move(node));
    } else {
      for (Value& in : node.in) in = at(in);
      here = append(std::move(node));
    }
    return map_[v] = here;
  }

  void copy(int32_t n) {
    Node node = from_[n];
    for (Value& v : node.in) v = at(v);
    const auto outputs = static_cast<int32_t>(node.out.size());
    const Value first = append(std::move(node));
    for (int32_t i = 0; i < outputs; ++i) map_[{n, i}] = {first.node, i};
  }

  Value append(Node node) {
    to_.nodes.push_back(std::move(node));
    return {to_.size() - 1, 0};
  }
  void map(Value of_original, Value here) { map_[of_original] = here; }

 private:
  const Graph& from_;
  Graph& to_;
  Bring bring_;
  Load load_;
  std::map<Value, Value> map_;
};

/// A node that reads or writes one slot.
inline Node load_of(const Program& program, SlotId slot, RegionId region) {
  Type type = program.slot(slot).type;
  type.layout = type.layout.only(MeshAxis::tensor);
  return {.op = Op::load, .in = {}, .out = {type}, .reads = {slot}, .writes = {}, .attrs = make_attrs(Op::load, {}), .region = region};
}
inline Node store_of(Value value, SlotId slot, RegionId region, When when = When::every) {
  return {.op = Op::store,
          .in = {value},
          .out = {},
          .reads = {},
          .writes = {slot},
          .attrs = make_attrs(Op::store, {}),
          .region = region,
          .when = when};
}

}  // namespace st
