// Compares a backend's result with the expected one.
#pragma once

#include <gtest/gtest.h>

#include "tensor.h"

namespace st::conformance {

/// NaN equals NaN; infinities must agree in sign. The message names the first wrong element and the worst one.
/// `computed_in`: the type of the terms; an fp64 result of fp32 terms is only as good as those.
::testing::AssertionResult near(const Tensor& got, const Tensor& want, const Tolerance& tolerance, DType computed_in = DType::f64);

/// The same with a tolerance relative to the largest element.
::testing::AssertionResult near(const Tensor& got, const Tensor& want, double relative_to_largest);

}  // namespace st::conformance
