#include <limits>

#include "comparison.h"
#include "conformance.h"

namespace st::conformance {
namespace {

// A division and a square root apart from products; the parameter itself is rounded once.
const Cases adamw_cases(Op::adamw, {.each = 4, .largest = 1}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}, Attrs{{"weight_decay", 0.0}}, Attrs{{"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 1e-6}}})
    for (const Shape& shape : shapes())
      for (const bool skip : {false, true}) {
        OpCase& c = s.add({s.normal(shape), Tensor::scalar(0.25, DType::f32), Tensor::scalar(skip, DType::boolean),
                           Tensor::of({2}, {1e-3, 7}, DType::f64)},
                          attrs);
        c.slots = {s.normal(shape), s.normal(shape, 0.1), s.uniform(shape, 0, 0.1)};
        c.dtypes = {DType::f32};
      }
});

TEST(AdamW, LeavesParameterAndMomentsAloneInASkippedStep) {
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    std::vector<OpCase> list;
    Suite s(Op::adamw, {}, list);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    OpCase& c = s.add({Tensor::of({3}, {nan, 1, 2}), Tensor::scalar(nan, DType::f32), Tensor::scalar(1, DType::boolean),
                       Tensor::of({2}, {1e-3, 1}, DType::f64)});
    c.slots = {s.normal({3}), s.normal({3}), s.uniform({3}, 0, 1)};
    EXPECT_EQ(run(*backend, c).slots, c.slots) << candidate.name;
  }
}

}  // namespace
}  // namespace st::conformance
