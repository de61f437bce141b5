// What may stand between two layers of a perceptron.
#pragma once

#include <string>
#include <string_view>

#include "ir/op.h"

namespace st {

struct Activation {
  std::string name;
  Op op;
  double gain;  // keeps the variance of a layer's output that of its input (torch.nn.init.calculate_gain; gelu and silu taken as relu)
};

/// gelu, relu, silu, tanh. Throws invalid_argument that begins with `what` and names the nearest.
const Activation& activation_named(std::string_view what, std::string_view name);

}  // namespace st
