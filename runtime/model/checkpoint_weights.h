// Selects the weights among a checkpoint's tensors.
#pragma once

#include <vector>

#include "checkpoint/manifest.h"

namespace st {

/// The tensors of kind parameter. A checkpoint of a host's own tensors has no kinds: all of them, except "<word>.<name>" where <name> is a
/// tensor too, because that is its state ("moment1.head.weight").
std::vector<TensorRecord> weights_in(const Manifest& manifest);

}  // namespace st
