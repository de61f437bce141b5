// The plan: the list of instructions that one rank executes in one step, with every buffer placed. A pure function of program and
// micro-batches: it can be made, printed and compared without a device; the executor runs the same object.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/memory.h"
#include "passes/recompute.h"
#include "passes/runner.h"

namespace st {

/// The copy of a weight that an instruction makes for all micro-batches of a step.
enum class Copy : uint8_t {
  none,
  of_step,   // packed or in 16 bits: valid for the rest of the step, unless a weight changes
  lasting,   // valid in later steps too, unless a weight changes other than by the update
  gathered,  // lasting, but made on request only, by all ranks together (keep_master_pieces)
};

struct Instruction {
  int32_t section, node, micro_batch;
  Copy makes = Copy::none;
  bool operator==(const Instruction&) const = default;
};

struct Plan {
  Program program;
  MemoryLayout memory;
  int64_t micro_batches = 1;
  std::vector<Instruction> instructions;  // `when` is resolved; views, and stores of values computed in their slot, are removed
  std::vector<PassRecord> passes;
  RecomputeRecord recompute;  // memory saved and arithmetic added by recomputation
};

/// Orders the sections over the micro-batches: forward and backward of each micro-batch in turn, then the update.
Plan make_plan(Program program, MemoryLayout memory, int64_t micro_batches);

/// Whether the plan makes such copies.
bool makes(const Plan& plan, Copy copy);

/// Number of matrix products per external library, by its identity; "own" counts the rest.
std::map<std::string, int64_t> products_by_library(const Program& program);

/// Text for people (--explain): passes with their times, the program, memory by role, savings and cost of recomputation, instructions by
/// op.
std::string explain(const Plan& plan);

}  // namespace st
