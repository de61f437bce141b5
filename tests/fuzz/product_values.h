// Compares the values of a product and its epilogue with sums in double precision.
#pragma once

#include "product_run.h"

namespace st::fuzz {

/// Checks the product without an epilogue: all elements, or as many as a few million multiplications allow.
void check_values(ProductTrial& trial, const ProductProblem& product, const Written& plain);
/// Checks what the epilogue made of `plain`.
void check_epilogue(const ProductTrial& trial, const ProductProblem& product, const Written& plain, const Written& finished);

}  // namespace st::fuzz
