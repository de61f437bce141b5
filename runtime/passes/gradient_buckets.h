// What data ranks exchange of a step's micro-batches: gradients, in buckets, and the loss.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// What is exchanged, and when (traps.md, order of sums 1).
enum class Reduce : int32_t {
  micro,  // each micro-batch's gradients, added by their owner in the order of the micro-batches: the bits do not depend on the ranks
  step,   // each rank's sum over its own micro-batches, once a step: less on the wire, the bits depend on the number of ranks
};

/// What becomes of a gradient's slot where a rank needs only its own piece of it.
enum class Keep : int32_t {
  whole,   // it stays, and all ranks' sums are gathered in it
  adding,  // only where each rank adds up its own micro-batches there; else the slot becomes this rank's piece (ZeRO-2)
  made,    // also where each gradient is made in it and exchanged at once (ZeRO-1)
};

/// Each piece of a gradient (program.cuts) has an owner, who gets all ranks' pieces of it and adds them in the order of the ranks.
/// Gradients are exchanged as backward makes them, in buckets of at most `bucket_bytes`, or of one that is larger; they change no bit.
/// Behind its sums a bucket is gathered (Keep::whole), but for uses of tied parameters, which are still to be added.
void exchange_gradients(Program& program, Reduce reduce, int64_t bucket_bytes, Keep keep);

/// What forward reports, the loss's sum and count, is added up over the ranks in each round of micro-batches that it is of.
void exchange_loss(Program& program);

/// Opens the update section, in which the uses of tied parameters are added on this rank's pieces of their gradients.
void add_uses_in_pieces(Program& program);

}  // namespace st
