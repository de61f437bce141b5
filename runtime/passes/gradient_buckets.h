// The collectives of data ranks in a step: gradients, in buckets, and the loss.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// Whether autodiff() has added the backward section, or its halves, of each forward section.
bool has_backward(const Program& program);
/// Whether a section of backward stores gradients of parameters.
bool makes_gradients(const Program& program, const Section& section);

/// When gradients are reduced (traps.md, order of sums 1).
enum class Reduce : int32_t {
  micro,  // after each micro-batch; the owner of a shard adds in micro-batch order, so results do not depend on the number of ranks
  step,   // once per step, each rank's sum over its own micro-batches: less traffic, results depend on the number of ranks
};

/// Which whole gradient slots remain if a rank needs only its own shard.
enum class Keep : int32_t {
  whole,   // all; the sums of all ranks are gathered in them
  adding,  // those in which a rank accumulates its own micro-batches; others shrink to this rank's shard (ZeRO-2)
  made,    // also those in which a gradient is computed and reduced at once (ZeRO-1)
};

/// Reduce-scatters gradients: the owner of each shard (Slot::sums) receives it from all ranks and adds in rank order. Gradients are
/// reduced as backward makes them, in buckets of at most `bucket_bytes` or of one larger gradient; buckets do not change results. With
/// Keep::whole a bucket is then gathered, except the uses of tied parameters, which still have to be added.
///
/// With a 16-bit `dtype` every rank rounds its gradients to it, the owner too, and sends 16 bits; the owner adds in fp32, or in `dtype`
/// where that is the slots' type (round_gradients()). Keep::made then shrinks the same slots as Keep::adding.
void exchange_gradients(Program& program, Reduce reduce, int64_t bucket_bytes, Keep keep, DType dtype = DType::f32);

/// Sums the loss's sum and count over the ranks in each round of micro-batches.
void exchange_loss(Program& program);

}  // namespace st
