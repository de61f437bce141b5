// Every function of the C ABI, called with what the input chooses.
#pragma once

#include "fuzz_world.h"

namespace st::fuzz {

/// One call of one function.
void call_something(World& world);

/// A context, a small regression and a small token model, their trainers, data and predictors: where sequences begin.
void set_up(World& world);

}  // namespace st::fuzz
