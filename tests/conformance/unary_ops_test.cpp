// Elementwise ops of one operand, and their gradients.
#include "comparison.h"
#include "conformance.h"

namespace st::conformance {
namespace {

using Draw = Tensor (*)(Suite&, const Shape&);

Tensor any(Suite& s, const Shape& shape) { return s.normal(shape); }
Tensor positive(Suite& s, const Shape& shape) { return s.uniform(shape, 0.1, 3); }

/// Every shape, the special values, and what `more` adds.
std::function<void(Suite&)> one_operand(Draw draw, const std::function<void(Suite&)>& more = {}) {
  return [=](Suite& s) {
    for (const Shape& shape : shapes()) s.add({draw(s, shape)});
    s.add_special({special_values()});
    if (more) more(s);
  };
}

/// x or y from low to high (both 0: normal), and the gradient of y.
std::function<void(Suite&)> backward(double low, double high, const std::function<void(Suite&)>& more) {
  return [=](Suite& s) {
    for (const Shape& shape : shapes()) {
      const Tensor at = low == high ? s.normal(shape) : s.uniform(shape, low, high);
      s.add({at, s.normal(shape)});
    }
    more(s);
  };
}

// Change a sign or select: the same bits everywhere.
const Cases abs_cases(Op::abs, {}, one_operand(any));
const Cases neg_cases(Op::neg, {}, one_operand(any));
const Cases sign_cases(Op::sign, {}, one_operand(any));
const Cases relu_cases(Op::relu, {}, one_operand(any));
const Cases relu_backward_cases(Op::relu_backward, {}, backward(0, 0, [](Suite& s) {
                                  s.add({Tensor(DType::f32, {129}), s.normal({129})});
                                }));

// Correctly rounded: the same bits everywhere.
const Cases sqrt_cases(Op::sqrt, {}, one_operand(positive, [](Suite& s) { s.add_special({s.uniform({129}, 0, 1e30)}); }));

// A polynomial against libm, up to the ends of the range: e^88.7 is the last finite one.
const Cases exp_cases(Op::exp, {.each = 2}, one_operand(any, [](Suite& s) {
                        s.add({s.normal({129}, 20)});
                        s.add_special({s.uniform({7, 5003}, -87.3, 88.72)});
                        s.add_special({s.uniform({129}, 88, 90)});
                        s.add_special({s.uniform({129}, -105, -86)});
                      }));

// A polynomial against libm; relative to ln x itself, also near 1.
const Cases log_cases(Op::log, {.each = 4}, one_operand(positive, [](Suite& s) {
                        s.add_special({s.uniform({129}, 0.999, 1.001)});
                        s.add_special({s.uniform({129}, 0, 1e30)});
                      }));

// A polynomial near zero, else an exponential.
const Cases tanh_cases(Op::tanh, {.each = 3}, one_operand(any, [](Suite& s) {
                         s.add({s.normal({129}, 1e-3)});
                         s.add_special({s.uniform({7, 5003}, -10, 10)});
                       }));

// (1 - y)(1 + y) has no inexact cancellation.
const Cases tanh_backward_cases(Op::tanh_backward, {.each = 3}, backward(-1, 1, [](Suite& s) {
                                  s.add({s.uniform({129}, 0.9, 1), s.normal({129})});
                                  s.add({s.uniform({129}, -1, -0.9999), s.normal({129})});
                                }));

// One exponential, one division.
const Cases sigmoid_cases(Op::sigmoid, {.each = 6}, one_operand(any, [](Suite& s) { s.add({s.normal({129}, 20)}); }));
const Cases silu_cases(Op::silu, {.each = 6}, one_operand(any, [](Suite& s) { s.add_special({s.uniform({129}, -6, 6)}); }));

// Three products.
const Cases sigmoid_backward_cases(Op::sigmoid_backward, {.each = 3}, backward(0, 1, [](Suite& s) {
                                     s.add({s.uniform({129}, 0, 1), s.normal({129})});
                                   }));

// 1 + x (1 - sigmoid) crosses zero: relative to the largest there.
const Cases silu_backward_cases(Op::silu_backward, {.each = 4, .largest = 4}, backward(0, 0, [](Suite& s) {
                                  s.add({s.normal({129}, 8), s.normal({129})});
                                }));

const Attrs kApproximations[] = {{{"approximate", std::string("tanh")}}, {{"approximate", std::string("erf")}}};

// The tail of Phi: its exponent, about x^2 / 2, magnifies the rounding of x. Far out it is relative to the largest.
const Cases gelu_cases(Op::gelu, {.each = 12}, [](Suite& s) {
  for (const Attrs& attrs : kApproximations) {
    for (const Shape& shape : shapes()) s.add({s.normal(shape)}, attrs);
    s.add_special({special_values()}, attrs);
    s.add_large({s.uniform({67, 1031}, -6, 6)}, attrs);
  }
});

// x Phi'(x) + Phi(x) crosses zero: relative to the largest there. The rounding of s is multiplied by x and the derivative of u.
const Cases gelu_backward_cases(Op::gelu_backward, {.each = 8, .largest = 8}, [](Suite& s) {
  for (const Attrs& attrs : kApproximations) {
    for (const Shape& shape : shapes()) s.add({s.normal(shape), s.normal(shape)}, attrs);
    s.add({s.normal({129}, 6), s.normal({129})}, attrs);
  }
});

// scale and shift may be rounded to fp32 first; where the sum cancels, the difference is relative to the largest.
const Cases affine_cases(Op::affine, {.each = 2, .largest = 1}, [](Suite& s) {
  for (const Attrs& attrs : {Attrs{}, Attrs{{"scale", 2.5}}, Attrs{{"scale", -0.1}, {"shift", 0.3}}, Attrs{{"shift", 1.0}}}) {
    for (const Shape& shape : shapes()) s.add({s.normal(shape)}, attrs);
    s.add_special({special_values()}, attrs);
  }
});

// A selection: the same bits everywhere.
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

// Rounded once, to nearest even: the same bits everywhere.
const Cases cast_cases(Op::cast, {}, [](Suite& s) {
  for (const char* dtype : {"f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"}) {
    const Attrs attrs = {{"dtype", std::string(dtype)}};
    for (const Shape& shape : shapes()) s.add_special({s.uniform(shape, 0, 200)}, attrs);
    s.add_special({s.flags({37})}, attrs);
    for (const DType from : {DType::i32, DType::i64, DType::u8}) s.add_special({s.integers({37}, 100, from)}, attrs);
  }
  for (const char* dtype : {"f32", "f64", "bf16", "f16"}) {
    s.add_special({special_values()}, {{"dtype", std::string(dtype)}});
    // Halfway between two neighbours of bf16, and of f16.
    s.add_special({Tensor::of({6}, {1.00390625, 1.01171875, -1.00390625, 1.00048828125, 1.00146484375, 65519})},
                  {{"dtype", std::string(dtype)}});
  }
  for (const char* dtype : {"i32", "i64"})
    s.add_special({Tensor::of({6}, {2.5, -2.5, 1e6, -1e6, 0.99, -0.99})}, {{"dtype", std::string(dtype)}});
  s.add({s.normal({3, 37})}, {{"dtype", std::string("f64")}});
});

const Cases fill_cases(Op::fill, {}, [](Suite& s) {
  for (const char* dtype : {"f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"})
    for (const Shape& shape : shapes())
      s.add({}, {{"shape", Ints(shape.begin(), shape.end())}, {"value", 3.0}, {"dtype", std::string(dtype)}});
  for (const double value : {0.0, -0.1, 1e30}) s.add({}, {{"shape", Ints{37}}, {"value", value}});
});

}  // namespace
}  // namespace st::conformance
