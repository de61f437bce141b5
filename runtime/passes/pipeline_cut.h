// Pipeline parallelism: cuts a step's program into the parts of the model, of which each stage has some.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"

namespace st {

struct PipelineParts {
  std::vector<int32_t> stage_of;          // by part of the model, in order
  std::string starts = "";                // parts_of_forward() (stage_parts.h)
  std::span<const RegionId> scopes = {};  // part_starts of another program of the model, whose cut to repeat; empty: by `starts`
  When copies = When::first;              // when a stage takes the weights of another one
};

/// Leaves what program.stage of program.mesh.stage stages has: a forward and a backward section for each of its parts, which are its chunks
/// in order. Computes the same values by the same nodes, so all results are bitwise those of one stage.
/// - A value that another part reads is stored in the stash; if that part is on another stage, it is sent there (ops send and receive, over
///   Program::links). So are the inputs that later sections read, which the host binds for the first section only.
/// - A parameter belongs to the stage that uses it first (give_to_stage), with its gradient and its update. A stage that uses it too (tied
///   weights) takes a copy, 16-bit where products read one, before the first micro-batch, and its use's gradient is a slot of that stage.
/// - The loss and outputs remain on the stage of the last part; so do output slots (seed_outputs), and inputs that backward alone reads.
/// Call after autodiff() and recompute(), before accumulate(). Throws invalid_argument like parts_of_forward(), and for a stage without
/// parameters.
void pipeline_cut(Program& program, const PipelineParts& parts);

}  // namespace st
