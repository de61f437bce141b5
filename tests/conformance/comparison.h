// Whether what a backend gave is what was wanted.
#pragma once

#include <gtest/gtest.h>

#include "tensor.h"

namespace st::conformance {

/// NaN equals NaN; infinities must agree in sign. The message names the first element that is off and the worst one.
/// `computed_in`: an fp64 result of fp32 terms is as good as those.
::testing::AssertionResult near(const Tensor& got, const Tensor& want, const Tolerance& tolerance, DType computed_in = DType::f64);

/// The same with a plain relative tolerance of the largest element.
::testing::AssertionResult near(const Tensor& got, const Tensor& want, double relative_to_largest);

}  // namespace st::conformance
