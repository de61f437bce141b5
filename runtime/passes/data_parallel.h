// Data parallelism: every rank has all parameters, and sees other micro-batches of a step.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// What is exchanged, and when (traps.md, order of sums 1).
enum class Reduce : int32_t {
  micro,  // each micro-batch's gradients, added by their owner in the order of the micro-batches: the bits do not depend on the ranks
  step,   // each rank's sum over its own micro-batches, once a step: less on the wire, the bits depend on the number of ranks
};

/// For program.rank of program.mesh.data ranks. Each piece of a gradient has an owner (program.cuts, made here), who gets all ranks' pieces
/// of it and adds them in the order of the ranks; the update section, opened here, adds the uses of tied parameters on their pieces and
/// gathers each gradient whole. Gradients are exchanged as backward makes them, in buckets of about `bucket_bytes`, which change no bit.
/// The loss's sum and count are added up over the ranks in each round of micro-batches.
///
/// Leaves the state bitwise that of one rank with the same micro-batches (Reduce::micro). Call after accumulate(), before clip().
void data_parallel(Program& program, Reduce reduce, int64_t bucket_bytes);

}  // namespace st
