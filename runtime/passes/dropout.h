// Dropout sites: sets the recipe's rate and seed for training; removes sites for inference.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/program.h"

namespace st {

/// Gives all dropout sites `seed`, and those of rate 0 `rate`; then removes sites whose rate is still 0. Call before autodiff(), which
/// copies the sites into backward.
void set_dropout(Program& program, double rate, int64_t seed);

/// Removes the sites for which `is_idle` holds from forward, and the counters with the last one.
void remove_dropout(Program& program, const std::function<bool(const Node&)>& is_idle);

}  // namespace st
