// Finds the parameters that are weights of products.
#pragma once

#include <vector>

#include "ir/program.h"

namespace st {

/// By slot: whether it is a parameter that is an operand of products in the forward pass and not the table of an embedding;
/// on a stage, of the whole model.
std::vector<bool> weights_of_products(const Program& program);

}  // namespace st
