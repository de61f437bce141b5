// A multi-layer perceptron: the smallest model that uses every part of a training step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"

namespace st {

struct MlpOptions {
  int64_t inputs = 1;
  std::vector<int64_t> hidden = {64, 64};  // widths; none: a linear model
  int64_t outputs = 1;                     // values to predict, or classes
  std::string activation = "gelu";         // gelu, relu, silu, tanh
  std::string loss = "mse";                // mse: regression on f32 targets; cross_entropy: classes
};

/// Throws invalid_argument: a size below 1, an unknown activation or loss (suggests the nearest).
void check_options(const MlpOptions& options);

/// Number of scalars in all parameters. Checks the options. Throws invalid_argument past 2^53.
int64_t parameter_count(const MlpOptions& options);

/// Builds one forward section; each scope layer.<i> is a boundary.
///   inputs      "x" f32 [batch, inputs]; "y" f32 [batch, outputs] for mse, i32 [batch] for cross_entropy
///   output      "prediction" or "logits" [batch, outputs]
///   parameters  layer.<i>.weight [in, out], He-initialised for the activation (the last layer: Xavier); layer.<i>.bias, zero
Program build_mlp(const MlpOptions& options);

}  // namespace st
