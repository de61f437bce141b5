// A loss as a sum and a count, which add up over micro-batches and ranks: a step's mean does not depend on how its batch is cut.
#pragma once

#include "ir/build.h"

namespace st {

/// f64 scalars. A step's loss is the total of the sums divided by the total of the counts over its micro-batches.
struct CountedLoss {
  Value sum, count;
};

/// Rewrites a scalar loss formula in this form; appends the nodes that are missing. Call it on the symbolic program.
///   constants  numbers and values that do not depend on the batch; they may be added to terms and may multiply or divide them
///   terms      may be added, subtracted and negated; one of
///              - the sum of a loss op: stands for its mean over all counted rows of the step
///              - a mean over all elements of a batch-dependent value: over those of the step
///              - total / total: each a loss op's sum or count, or a sum over all elements of a batch-dependent value; the divisor must
///                not depend on a trainable parameter. Stands for the quotient of the step's totals
///   counts     terms that are added must have equal counts or counts in a ratio that the shapes determine; constants go with any term
/// Throws invalid_argument for any other formula; names the op or the two terms.
CountedLoss counted_loss(Builder& b, Value loss);

/// Whether `value` is the sum of a loss op or depends on one.
bool reads_loss(const Graph& graph, Value value);

}  // namespace st
