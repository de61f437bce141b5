// The names of each optimizer's state here (runtime/ir/optimizer_state.h) and in torch.optim:
//
//   adamw, adam  AdamW, Adam   moment1: exp_avg, moment2: exp_avg_sq
//   sgd          SGD           momentum: momentum_buffer
//   rmsprop      RMSprop       moment2: square_avg, momentum: momentum_buffer, gradient_mean: grad_avg
//   adagrad      Adagrad       square_sum: sum
//   adafactor    Adafactor     row_variance: row_var (with a last dim of 1), column_variance: col_var (with a second last dim of 1),
//   variance
//
// All but SGD also have "step", the number of updates. "average" is the moving average of the weights.
#pragma once

#include <span>
#include <string_view>

namespace cli {

struct TorchStateName {
  std::string_view optimizer, ours, theirs;  // optimizer: the recipe's name
};

inline constexpr TorchStateName kTorchStateNames[] = {
    {"adamw", "moment1", "exp_avg"},
    {"adamw", "moment2", "exp_avg_sq"},
    {"adam", "moment1", "exp_avg"},
    {"adam", "moment2", "exp_avg_sq"},
    {"sgd", "momentum", "momentum_buffer"},
    {"rmsprop", "moment2", "square_avg"},
    {"rmsprop", "momentum", "momentum_buffer"},
    {"rmsprop", "gradient_mean", "grad_avg"},
    {"adagrad", "square_sum", "sum"},
    {"adafactor", "row_variance", "row_var"},
    {"adafactor", "column_variance", "col_var"},
    {"adafactor", "variance", "variance"},
};

}  // namespace cli
