#include "conformance.h"

namespace st::conformance {
namespace {

// A choice: the same bits everywhere.
const Cases relu_cases(Op::relu, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape)});
  s.add_special({special_values()});
});

// A choice: the same bits everywhere.
const Cases relu_backward_cases(Op::relu_backward, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape), s.normal(shape)});
  s.add({Tensor(DType::f32, {129}), s.normal({129})});
});

}  // namespace
}  // namespace st::conformance
