// Gradients divided by the loss scale where they lie, in the host's own arrays, and looked at on the way.
#pragma once

#include "base/workers.h"
#include "parts/gradient_array.h"

namespace st {

/// Multiplies each element with `inverse`, rounded to fp32 first but for f64, and rounds once to the array's type. Whether every element is
/// finite afterwards. One pass; allocates nothing; the same bits for any threads. Denormals of f16 count, those of the others are 0, as in
/// all of the library; inverse 1 writes nothing. Throws invalid_argument for another type.
bool unscale(const GradientArray& gradient, double inverse, Workers& workers);

}  // namespace st
