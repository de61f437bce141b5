// Activations between the layers of a perceptron.
#pragma once

#include <string>
#include <string_view>

#include "ir/op.h"

namespace st {

struct Activation {
  std::string name;
  Op op;
  double gain;  // preserves variance from a layer's input to its output (torch.nn.init.calculate_gain; gelu and silu use relu's)
};

/// gelu, relu, silu or tanh. Throws invalid_argument that begins with `what` and suggests the nearest name.
const Activation& activation_named(std::string_view what, std::string_view name);

}  // namespace st
