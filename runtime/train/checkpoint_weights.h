// Which tensors of a checkpoint are weights.
#pragma once

#include <vector>

#include "checkpoint/manifest.h"

namespace st {

/// Those of kind parameter. Of a host's own, in which no kinds are told apart, all but "<word>.<name>" where <name> is one of them too:
/// that is its state, "moment1.head.weight".
std::vector<TensorRecord> weights_in(const Manifest& manifest);

}  // namespace st
