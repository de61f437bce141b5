// The graph: coarse typed ops in execution order; append-only; nodes refer to each other by integer ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "ir/attrs.h"
#include "ir/layout.h"
#include "ir/op.h"

namespace st {

struct Value {  // an edge is two indices
  int32_t node = -1, output = 0;
  explicit operator bool() const { return node >= 0; }
  auto operator<=>(const Value&) const = default;
};

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout;
  bool operator==(const Type&) const = default;
  int64_t bytes() const;  // throws invalid_argument past int64
};

std::string text_of(const Type& type);  // "f32[8, 64]{data:sharded(0)}"; symbolic: "f32[batch, 64]", flattened "f32[64*batch]"
inline void append_text(std::string& out, const Type& type) { out += text_of(type); }

using SlotId = int32_t;
using RegionId = int32_t;  // index into Program::regions; 0 is the root

/// The micro-batches of a step in which a node runs: the first one writes a gradient, the rest add to it.
enum class When : int32_t { every, first, rest, last };
std::string_view name_of(When when);

struct Node {
  Op op;
  std::vector<Value> in;
  std::vector<Type> out;
  std::vector<SlotId> reads, writes;
  Attrs attrs;
  RegionId region = 0;
  When when = When::every;
};

/// The axis of the mesh along which the ranks of a collective, or of a message, lie.
MeshAxis axis_of(const Node& collective);

struct Graph {
  std::vector<Node> nodes;

  const Node& operator[](int32_t node) const { return nodes[static_cast<size_t>(node)]; }
  Node& operator[](int32_t node) { return nodes[static_cast<size_t>(node)]; }
  int32_t size() const { return static_cast<int32_t>(nodes.size()); }
  const Type& type(Value v) const { return nodes[static_cast<size_t>(v.node)].out[static_cast<size_t>(v.output)]; }
  /// The load whose slot's memory the value views; null: the value has its own memory.
  const Node* load_behind(Value v) const;
  /// That slot, or -1.
  SlotId slot_behind(Value v) const;
};

}  // namespace st
