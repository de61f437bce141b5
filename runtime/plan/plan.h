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

struct Instruction {
  int32_t section, node, micro_batch;
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

/// Number of matrix products per external library, by its identity; "own" counts the rest.
std::map<std::string, int64_t> products_by_library(const Program& program);

/// Text for people (--explain): passes with their times, the program, memory by role, savings and cost of recomputation, instructions by
/// op.
std::string explain(const Plan& plan);

}  // namespace st
