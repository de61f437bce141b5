#include "comparison.h"
#include "conformance.h"

namespace st::conformance {
namespace {

// A choice: the same bits everywhere.
const Cases clamp_cases(Op::clamp, {}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{{"low", -0.5}, {"high", 0.75}}, Attrs{{"low", 0.0}}, Attrs{{"high", 0.25}}, Attrs{}}) {
    for (const Shape& shape : shapes()) s.add({s.normal(shape)}, attrs);
    s.add_special({special_values()}, attrs);
  }
});

// At a bound the slope is 1 on one side and 0 on the other: 0 is PyTorch's choice since 2.15, and relu's.
TEST(Clamp, StopsTheGradientOnItsBounds) {
  OpCase c{.op = Op::clamp, .name = "bounds", .in = {Tensor::of({5}, {-0.5, 0.75, 0, 3, -3})}, .attrs = {{"low", -0.5}, {"high", 0.75}}};
  c.parameters = {0};
  const Tensor seed = Tensor::of({5}, {1, 2, 3, 4, 5});
  const Program program = loss_program(c, {seed});
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    Interpreter interpreter(*backend, program);
    interpreter.set("in.0", c.in[0]);
    interpreter.set("seed.0", seed);
    interpreter.run(Phase::forward);
    interpreter.run(Phase::backward);
    EXPECT_TRUE(near(interpreter.get("gradient.in.0"), Tensor::of({5}, {0, 0, 3, 0, 0}), Tolerance{})) << candidate.name;
  }
}

}  // namespace
}  // namespace st::conformance
