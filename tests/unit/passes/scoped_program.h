// Random graphs of scopes in scopes, for tests of passes that go by boundaries.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace st {

/// Outermost boundary scopes block.0, ... over [batch, 6] values, each with ops of its own and up to two boundary scopes inside it; some
/// read values of earlier ones or from inside them. Inputs x and y, output "prediction", a loss outside of all scopes. Equal for equal
/// arguments.
Program scoped_program(uint64_t seed, int blocks);

}  // namespace st
