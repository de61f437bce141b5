// A multi-layer perceptron: the smallest model with every part of a training step in it.
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

/// Throws invalid_argument: a size below 1, an unknown activation or loss (the nearest is named), sizes that overflow.
void check_options(const MlpOptions& options);

/// Scalars in all parameters. Checks the options.
int64_t parameter_count(const MlpOptions& options);

/// One forward section. Inputs "x" f32 [batch, inputs] and "y": f32 [batch, outputs] for mse, i32 [batch] for cross_entropy; output
/// "prediction" or "logits" [batch, outputs]. Parameters layer.<i>.weight [in, out], He-initialised for the activation (the last layer
/// Xavier), and layer.<i>.bias, zero. Each layer.<i> is a boundary scope.
Program build_mlp(const MlpOptions& options);

}  // namespace st
