#include "conformance.h"

namespace st::conformance {
namespace {

// An fp64 sum of terms that may be fp32.
const Cases bce_with_logits_cases(Op::bce_with_logits, {.each = 4}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}})
    for (const Shape& shape : shapes()) {
      const auto declare = [](OpCase& c) {
        if (!c.parameters.empty()) c.parameters = {0};
        if (c.in[0].elements() > 10'000) c.dtypes = {DType::f32, DType::bf16, DType::f16};  // the order of so many f64 terms shows
      };
      declare(s.add({s.normal(shape, 3), s.uniform(shape, 0, 1)}, attrs));
      declare(s.add({s.normal(shape), s.uniform(shape, 0, 1), s.uniform(shape, 0, 2)}, attrs));
    }
});

// sigmoid(x) - t cancels: relative to the largest.
const Cases bce_with_logits_backward_cases(Op::bce_with_logits_backward, {.each = 4, .largest = 4}, [](Suite& s) {
  const Tensor dsum = Tensor::scalar(0.37, DType::f64);
  for (const Attrs& attrs : {Attrs{}})
    for (const Shape& shape : shapes()) {
      s.add({s.normal(shape, 3), s.uniform(shape, 0, 1), dsum}, attrs);
      s.add({s.normal(shape), s.uniform(shape, 0, 1), dsum, s.uniform(shape, 0, 2)}, attrs);
    }
});

}  // namespace
}  // namespace st::conformance
