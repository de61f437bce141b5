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
#include "plan/exchange_plan.h"
#include "plan/step_order.h"

namespace st {

/// The copy of a weight that an instruction makes for all micro-batches of a step.
enum class Copy : uint8_t {
  none,
  of_step,   // packed or in 16 bits: valid for the rest of the step, unless a weight changes
  lasting,   // valid in later steps too, unless a weight changes other than by the update
  gathered,  // lasting, but made on request only, by all ranks together (shard_masters)
};

struct Instruction {
  enum class Kind : uint8_t {
    kernel,
    exchange,  // a collective, on the computing thread
    post,      // a collective that a second thread runs until its await
    await,     // waits for the end of a posted collective
    send,      // a message to another stage, which leaves while the rank computes; its memory is the link's until its release
    release,   // waits until the last message that a send took from this micro-batch's buffer has left
    receive,   // waits for a message of another stage
    // Copies of bytes in the host's memory, for the nodes of a window (plan/state_windows.h), by a second stream, after what was issued
    // before:
    fetch,       // to the device
    write_back,  // what the nodes have written, to the host's memory
    await_copy,  // waits for the window's last copy
  };
  /// The ranks that run it. If it is a reduction, its contributors are the ranks with rows in the round, or in the step.
  enum class Ranks : uint8_t {
    with_rows,     // in its micro-batch
    all_in_round,  // all, if any rank has rows in the round
    all_in_step,   // all, once per step
  };

  int32_t section, node, micro_batch;  // node: of copies, the first one of the window
  int32_t exchange = -1;               // of what ranks exchange: the index in Plan::exchanges
  Kind kind = Kind::kernel;
  Ranks ranks = Ranks::with_rows;
  Copy makes = Copy::none;
  int32_t within = -1;  // not in the node's place, but at the begin of this section: early weights, another chunk's release
  int32_t window = -1;  // of copies: the index in MemoryLayout::windows
  bool is_copy() const { return window >= 0; }
  /// Whether the rank gives bytes to others: in a collective, or as a message.
  bool sends() const { return kind == Kind::exchange || kind == Kind::post || kind == Kind::send; }
  /// Whether it only waits, for work of another stream.
  bool is_wait() const { return kind == Kind::await || kind == Kind::release || kind == Kind::await_copy; }
  int32_t run() const { return within < 0 ? section : within; }
  bool is_early() const { return within >= 0 && kind != Kind::release; }
  bool operator==(const Instruction&) const = default;
};

struct Plan {
  Program program;
  MemoryLayout memory;
  int64_t micro_batches = 1;
  std::vector<Instruction> instructions;  // `when` is resolved; views, and stores of values computed in their slot, are removed
  std::vector<ExchangePlan> exchanges;    // by first instruction
  size_t begin_of_update = 0;             // the first instruction of the update; instructions.size(): there is none
  size_t first_optimizer = 0;             // the first one that changes a parameter; instructions.size(): there is none
  std::vector<PassRecord> passes;
  RecomputeRecord recompute;  // memory saved and arithmetic added by recomputation

  /// The first instruction of a phase in a micro-batch, or instructions.size(); the update belongs to the last micro-batch.
  size_t first_of(Phase phase, int64_t micro_batch) const;
};

/// Lists the sections' nodes in this order. `memory`: memory_plan() of the same program and order.
Plan make_plan(Program program, MemoryLayout memory, const StepOrder& order);

/// The ranks that run a node of a section, which makes such copies of weights.
Instruction::Ranks ranks_of(const Program& program, const Section& section, const Node& node, Copy makes);

/// Whether the plan makes such copies.
bool makes(const Plan& plan, Copy copy);

/// Number of matrix products per external library, by its identity; "own" counts the rest.
std::map<std::string, int64_t> products_by_library(const Program& program);

/// The instructions with all that they say, one line for each but for kernels in a row that say the same; micro-batches with the same
/// instructions once.
std::string print_instructions(const Plan& plan);

/// Text for people (--explain): passes with their times, the program, memory by role, savings and cost of recomputation, instructions by
/// op, then the instructions.
std::string explain(const Plan& plan);

}  // namespace st
