// Which parameters are weights of products.
#pragma once

#include <vector>

#include "ir/program.h"

namespace st {

/// By slot: whether it is a parameter that products of the forward pass multiply by, and no embedding looks rows up in.
std::vector<bool> weights_of_products(const Program& program);

}  // namespace st
