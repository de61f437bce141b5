// Random graphs with nested scopes, for tests of passes that depend on boundaries.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// Outermost boundary scopes block.0, ... over [batch, 6] values, each with its own ops and up to two nested boundary scopes; some read
/// results of earlier scopes or values inside them. Inputs x and y, output "prediction", a loss outside all scopes. Depends only on the
/// arguments.
Program scoped_program(uint64_t seed, int blocks);

}  // namespace st
