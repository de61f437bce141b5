// The plan: what one rank executes in one step, as a list, with every byte placed. A pure function of program and micro-batches: it can be
// made, printed and compared without a device, and then the same object is executed.
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
  std::vector<Instruction> instructions;  // `when` resolved; views and stores of values made in their slot are gone
  std::vector<PassRecord> passes;
  RecomputeRecord recompute;  // what it saves and costs
};

/// Lays sections x micro-batches out in time: forward and backward of each micro-batch in turn, then the update.
Plan make_plan(Program program, MemoryLayout memory, int64_t micro_batches);

/// How many of its matrix products each library of others makes, by its identity, and "own": the rest.
std::map<std::string, int64_t> products_by_library(const Program& program);

/// For people (--explain): the passes with their times, the program, memory by role, what recompute saves and costs, instructions by
/// op.
std::string explain(const Plan& plan);

}  // namespace st
