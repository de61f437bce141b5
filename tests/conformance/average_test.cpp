#include "conformance.h"

namespace st::conformance {
namespace {

// One subtraction, one multiplication and one addition an element: the difference may cancel.
const Cases average_cases(Op::average, {.each = 8, .largest = 1}, [](Suite& s) {
  for (const double decay : {0.0, 0.5, 0.999})
    for (const bool skip : {false, true})
      for (const double number : {1.0, 7.0})
        for (const Shape& shape : shapes()) {
          OpCase& c = s.add({s.normal(shape), Tensor::scalar(skip, DType::boolean), Tensor::of({2}, {1e-3, number}, DType::f64)},
                            {{"decay", decay}});
          c.slots = {s.normal(shape)};
          c.dtypes = {DType::f32};
        }
});

}  // namespace
}  // namespace st::conformance
