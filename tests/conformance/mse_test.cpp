#include "conformance.h"

namespace st::conformance {
namespace {

// An fp64 sum of terms that may be fp32.
const Cases mse_cases(Op::mse, {.each = 4}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}})
    for (const Shape& shape : shapes()) {
      const auto declare = [](OpCase& c) {
        if (!c.parameters.empty()) c.parameters = {0, 1};
        if (c.in[0].elements() > 10'000) c.dtypes = {DType::f32, DType::bf16, DType::f16};  // the order of so many f64 terms shows
      };
      declare(s.add({s.normal(shape, 3), s.normal(shape)}, attrs));
      declare(s.add({s.normal(shape), s.normal(shape), s.uniform(shape, 0, 2)}, attrs));
    }
});

// A few products.
const Cases mse_backward_cases(Op::mse_backward, {.each = 4, .largest = 4}, [](Suite& s) {
  const Tensor dsum = Tensor::scalar(0.37, DType::f64);
  for (const Attrs& attrs : {Attrs{}})
    for (const Shape& shape : shapes()) {
      s.add({s.normal(shape, 3), s.normal(shape), dsum}, attrs);
      s.add({s.normal(shape), s.normal(shape), dsum, s.uniform(shape, 0, 2)}, attrs);
    }
});

}  // namespace
}  // namespace st::conformance
