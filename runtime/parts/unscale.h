// Divides gradients by the loss scale in place, in the host's own arrays, and checks that they are finite.
#pragma once

#include "base/workers.h"
#include "parts/gradient_array.h"

namespace st {

/// Multiplies each element by `inverse` (rounded to fp32 first, except for f64) and rounds once to the array's type; returns whether every
/// element is finite afterwards. One pass; allocates nothing; the same bits for any number of threads; inverse 1 writes nothing. f16 keeps
/// denormals, other types flush them to 0, as everywhere in the library. Throws invalid_argument for a type that is not floating.
bool unscale(const GradientArray& gradient, double inverse, Workers& workers);

}  // namespace st
