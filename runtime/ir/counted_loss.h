// A loss as a sum and a count: what micro-batches and ranks add up, so that a step has the mean of the formula however its batch is cut.
#pragma once

#include "ir/build.h"

namespace st {

/// f64 scalars. Over the micro-batches of a step, all sums over all counts is the loss.
struct CountedLoss {
  Value sum, count;
};

/// The formula of a scalar in this form; appends what is not in the graph yet. Numbers, and what does not depend on the batch (C), may be
/// added to terms and may multiply and divide them; terms may be added, subtracted and negated. A term is
///   - the sum of a loss op: its mean over all counted rows of a step;
///   - a mean over all elements of what has the batch: over those of the step;
///   - total / total, each a loss op's sum or count or a sum over all elements of what has the batch, the divisor of no trainable
///     parameter: the quotient of the step's.
/// Terms that are added have counts that are equal or in a ratio that shapes tell; a C goes with any. For the symbolic program: throws
/// invalid_argument, naming the op or the two terms, for all else.
CountedLoss counted_loss(Builder& b, Value loss);

/// Whether it is, or is made of, the sum of a loss op.
bool reads_loss(const Graph& graph, Value value);

}  // namespace st
