// Copies a section's graph node by node, so that a pass can remove, replace or insert nodes in an append-only graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/program.h"

namespace st {

class Rewrite {
 public:
  /// Borrows the program; the section's graph is replaced by finish().
  Rewrite(Program& program, Section& section) : program_(program), section_(section) {}

  const Graph& old() const { return section_.graph; }
  const Graph& made() const { return new_; }  // so far
  /// The new value of an old one.
  Value at(Value old) const { return map_.at(old); }
  bool has(Value old) const { return map_.contains(old); }
  /// Copies an old node and maps its outputs one to one.
  int32_t keep(int32_t node);
  /// Appends a new node whose inputs are new values, and maps the old node's outputs to its outputs.
  int32_t replace(int32_t node, Node by);
  int32_t append(Node node);
  void map(Value old, Value by) { map_[old] = by; }
  /// Replaces the section's graph and updates outputs and loss.
  void finish();

 private:
  Program& program_;
  Section& section_;
  Graph new_;
  std::map<Value, Value> map_;
};

/// Appends a cast of a new value; returns the value itself if it has that dtype.
Value append_cast(Rewrite& rewrite, Value value, DType dtype, RegionId region, When when = When::every);

/// The name, or one made of it that no slot has: a host may call a parameter or an input so, and a scope may make a slot twice.
std::string free_name(const Program& program, std::string name);

/// Number of uses of each value as an input, by node and output; outputs and the loss count as uses in a forward section.
std::vector<std::vector<int32_t>> uses_of(const Program& program, const Section& section);

}  // namespace st
