// The values of a product and its epilogue against sums in double precision.
#pragma once

#include "product_run.h"

namespace st::fuzz {

/// Of the product without an epilogue: all elements, or as many as some millions of multiplications give.
void check_values(ProductTrial& trial, const ProductProblem& product, const Written& plain);
/// Of what the epilogue made of `plain`.
void check_epilogue(const ProductTrial& trial, const ProductProblem& product, const Written& plain, const Written& finished);

}  // namespace st::fuzz
