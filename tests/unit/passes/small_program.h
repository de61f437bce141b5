// Small programs for tests of passes, and access to their nodes by op.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/verify.h"
#include "models/gpt.h"
#include "passes/autodiff.h"
#include "passes/scale_loss.h"
#include "plan/memory_plan.h"

namespace st {

/// A forward section under construction.
struct SmallProgram {
  explicit SmallProgram(int64_t batch = 0) {
    program.sections.emplace_back();
    program.batch = batch;
  }
  SmallProgram(const SmallProgram&) = delete;
  SmallProgram& operator=(const SmallProgram&) = delete;

  Program program;
  Builder b{program, 0};
};

/// Two blocks; no size is a multiple of a vector or a tile.
inline Program small_gpt() { return build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}); }

/// The program of one of several ranks; its weights have more than one cut grain.
inline Program gpt_of_rank(int32_t ranks, int32_t rank, int64_t layers = 2) {
  Program program = bind(build_gpt({.layers = layers, .width = 66, .heads = 3, .context = 7, .vocabulary = 70}), 2);
  program.mesh.data = ranks;
  program.rank = rank;
  return program;
}

inline Program with_backward(Program program, int64_t micro_batches = 1) {
  scale_loss(program, micro_batches);
  autodiff(program);
  verify(program, "autodiff");
  return program;
}

inline MemoryLayout memory_without_workspace(const Program& program) {
  return memory_plan(program, in_turn(program, 1), [](auto&&...) { return int64_t{0}; });
}

inline const Graph& forward_of(const Program& program) { return program.find(Phase::forward)->graph; }

inline std::vector<const Node*> nodes_of(const Graph& graph, Op op) {
  std::vector<const Node*> found;
  for (const Node& node : graph.nodes)
    if (node.op == op) found.push_back(&node);
  return found;
}

inline std::vector<const Node*> nodes_of(const Program& program, Phase phase, Op op) { return nodes_of(program.find(phase)->graph, op); }

/// The nodes of this op in all sections, in order.
inline std::vector<const Node*> nodes_of(const Program& program, Op op) {
  std::vector<const Node*> found;
  for (const Section& section : program.sections) std::ranges::copy(nodes_of(section.graph, op), std::back_inserter(found));
  return found;
}

inline int64_t count_of(const Program& program, Op op) { return std::ssize(nodes_of(program, op)); }

inline const Slot& slot_of(const Program& program, SlotId id) { return program.slot(id); }

}  // namespace st
