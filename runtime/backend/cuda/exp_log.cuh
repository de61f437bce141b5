// Exponential and logarithm by the type of their argument: the library functions of CUDA, within 2 ulp in fp32.
#pragma once

#include <cmath>

#include <device/threads.h>

namespace st::cuda {

DEVICE float exponential(float x) { return expf(x); }
DEVICE double exponential(double x) { return exp(x); }
DEVICE float logarithm(float x) { return logf(x); }
DEVICE double logarithm(double x) { return log(x); }
DEVICE float logarithm_of_1_plus(float x) { return log1pf(x); }
DEVICE double logarithm_of_1_plus(double x) { return log1p(x); }

}  // namespace st::cuda
