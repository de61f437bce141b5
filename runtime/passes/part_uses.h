// Which part of a pipeline's model computes what, and who reads it: what pipeline_cut() finds before it writes the sections of a stage.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "passes/stage_parts.h"

namespace st {

struct PipelineParts;

struct PartUses {
  /// Of a program of the whole model. Borrows both, of which the program may get more slots. Throws invalid_argument like
  /// parts_of_forward(), and for a stage without parameters.
  PartUses(const Program& program, const PipelineParts& parts);
  PartUses(const PartUses&) = delete;
  PartUses& operator=(const PartUses&) = delete;

  int32_t stage_of(int32_t part) const { return stages_[static_cast<size_t>(part)]; }
  bool is_own(int32_t part) const { return stage_of(part) == own; }
  int32_t chunk_of(int32_t part) const;  // on its stage
  std::vector<int32_t> own_parts() const;

  /// The part in which a node of forward runs; the loss is the last part's, and the outputs for the host.
  int32_t part_of(int32_t n) const;
  /// That of a value of backward.
  int32_t part_b(Value v) const { return part_of_backward[static_cast<size_t>(v.node)]; }
  /// Whether a node of one of the two graphs is made where it is read, not in its part.
  bool is_left_out(const Graph& graph, int32_t n) const;
  /// The value of which this one is a view.
  static Value behind(const Graph& graph, Value v);

  const int32_t count, own;                    // parts of all stages; this rank's stage
  const Graph forward, backward;               // of the whole model
  const std::vector<int32_t> part_of_forward;  // by node
  std::vector<int32_t> part_of_backward;       // likewise
  std::map<SlotId, Value> value_in;            // by stash slot, the value of forward
  std::map<Value, SlotId> slot_of;             // by value of forward that is stored as it is, its stash slot
  std::map<SlotId, Value> given_late;          // by input that backward alone reads, its load
  std::map<SlotId, int32_t> makers;            // by working copy, its store
  std::map<Value, std::set<int32_t>> readers_in_forward, readers_in_backward;  // parts other than the value's
  std::map<Value, std::set<int32_t>> recalled_by;                              // by value of forward, the parts that read it in backward
  std::map<SlotId, std::set<int32_t>> users;                                   // by parameter or working copy, the stages that read it
  std::map<SlotId, int32_t> owner, stage_of_gradient;                          // stages, by parameter and by gradient
  std::set<SlotId> late_inputs;                                                // that this stage's sections after the first one read

 private:
  Role role(SlotId slot) const { return program_.slot(slot).role; }
  bool is_stash_store(const Node& node) const { return node.op == Op::store && role(node.writes[0]) == Role::stash; }
  bool is_result(const Node& node) const;
  bool is_given_late(const Node& node) const { return node.op == Op::load && given_late.contains(node.reads[0]); }
  bool is_anywhere(const Node& node) const { return is_made_anywhere(node) && !is_given_late(node); }

  void find_stashed();
  void find_given_late();
  void find_makers();
  void find_parts_of_backward();
  void read_in_forward(Value v, int32_t part);
  void find_readers_in_forward();
  void find_readers_in_backward();
  void use_weight(SlotId slot, int32_t part, bool in_forward);
  void find_owners();
  void check_stages() const;

  const Program& program_;
  const std::vector<int32_t>& stages_;                     // by part
  std::set<int32_t> is_of_maker_;                          // nodes of forward
  std::map<SlotId, std::pair<bool, int32_t>> first_part_;  // by parameter: whether forward reads it, and in which part first
};

}  // namespace st
