// Copies a section's graph node by node, so that a pass can remove, replace or insert nodes in an append-only graph.
#pragma once

#include <cassert>
#include <string>
#include <vector>

#include "ir/program.h"

namespace st {

class Rewrite {
 public:
  /// Borrows the program; the section's graph is replaced by finish(), until which it must not change.
  Rewrite(Program& program, Section& section);

  const Graph& old() const { return section_.graph; }
  const Graph& made() const { return new_; }  // so far
  /// The new value of an old one.
  Value at(Value old) const;
  bool has(Value old) const { return static_cast<bool>(made_of(old)); }
  /// Copies an old node and maps its outputs one to one.
  int32_t keep(int32_t node);
  /// Appends a new node whose inputs are new values, and maps the old node's outputs to its outputs.
  int32_t replace(int32_t node, Node by);
  int32_t append(Node node);
  void map(Value old, Value by) { made_[place_of(old)] = by; }
  /// Replaces the section's graph and updates outputs and loss.
  void finish();

 private:
  size_t place_of(Value old) const {
    assert(old.node >= 0 && static_cast<size_t>(old.node) < begins_.size());
    return begins_[static_cast<size_t>(old.node)] + static_cast<size_t>(old.output);
  }
  Value made_of(Value old) const { return made_[place_of(old)]; }

  Program& program_;
  Section& section_;
  Graph new_;
  std::vector<size_t> begins_;  // of each old node's values in made_
  std::vector<Value> made_;     // of each old value; none yet: no node
};

/// Appends a cast of a new value; returns the value itself if it has that dtype.
Value append_cast(Rewrite& rewrite, Value value, DType dtype, RegionId region, When when = When::every);

/// The name, or one made of it that no slot has: a host may call a parameter or an input so, and a scope may make a slot twice.
std::string free_name(const Program& program, std::string name);

/// Number of uses of each value as an input, by node and output; outputs and the loss count as uses in a forward section.
std::vector<std::vector<int32_t>> uses_of(const Program& program, const Section& section);

}  // namespace st
