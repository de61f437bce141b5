// Elementwise ops of two or more operands, which may broadcast.
#include "conformance.h"

namespace st::conformance {
namespace {

const Tensor& divisors() {
  static const Tensor values = Tensor::of({14, 1}, {1, 0, -1, 2, 3, -2, 0.5, 1e30, -1e30, 7, 8, 9, 10, 11});
  return values;
}

void two_operands(Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape), s.normal(shape)});
  for (const auto& [a, b] : broadcast_pairs()) s.add({s.normal(a), s.normal(b)});
  s.add_special({special_values(), special_values()});
  s.add_special({special_values(), divisors()});
  s.add_special({s.integers({3, 37}, 100), s.integers({37}, 100)});
  s.add_special({s.integers({129}, 100, DType::i64), s.integers({1}, 100, DType::i64)});
}

void two_operands_with_ties(Suite& s) {
  two_operands(s);
  s.add_special({Tensor::of({4}, {1, 2, -3, 0}), Tensor::of({4}, {1, 2.5, -3, -1})});
}

// One correctly rounded operation: the same bits everywhere.
const Cases add_cases(Op::add, {}, two_operands);
const Cases sub_cases(Op::sub, {}, two_operands);
const Cases mul_cases(Op::mul, {}, two_operands);
const Cases div_cases(Op::div, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.normal(shape), s.uniform(shape, 0.2, 3)});
  for (const auto& [a, b] : broadcast_pairs()) s.add({s.normal(a), s.uniform(b, 0.2, 3)});
  s.add_special({special_values(), special_values()});
  s.add_special({special_values(), divisors()});
});

// A selection: the same bits everywhere.
const Cases minimum_cases(Op::minimum, {}, two_operands_with_ties);
const Cases maximum_cases(Op::maximum, {}, two_operands_with_ties);
const Cases compare_cases(Op::compare, {}, [](Suite& s) {
  for (const char* test : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    const Attrs attrs = {{"test", std::string(test)}};
    for (const auto& [a, b] : broadcast_pairs()) s.add({s.normal(a), s.normal(b)}, attrs);
    s.add({s.integers({3, 37}, 3), s.integers({37}, 3)}, attrs);
    s.add({s.integers({129}, 3, DType::i64), s.integers({129}, 3, DType::i64)}, attrs);
    s.add({special_values(), special_values()}, attrs);
    s.add({special_values(), Tensor::of({14, 1}, {0, -0.0, 1, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})}, attrs);
  }
});
const Cases where_cases(Op::where, {}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.flags(shape), s.normal(shape), s.normal(shape)});
  for (const auto& [a, b] : broadcast_pairs()) {
    s.add({s.flags(a), s.normal(b), s.normal({})});
    s.add({s.flags(b), s.normal(a), s.normal(b)});
  }
  s.add({s.flags({3, 37}), s.integers({37}, 9), s.integers({3, 1}, 9)}).parameters.clear();
  s.add_special({s.flags({14}), special_values(), s.normal({14})});  // the operand that is not selected has no effect
});

// The exponent magnifies the rounding of ln a, so kernels compute it in double: one rounding either way.
const Cases pow_cases(Op::pow, {.each = 1}, [](Suite& s) {
  for (const Shape& shape : shapes()) s.add({s.uniform(shape, 0.2, 5), s.normal(shape)});
  for (const auto& [a, b] : broadcast_pairs()) s.add({s.uniform(a, 0.2, 5), s.normal(b)});
  s.add_special({Tensor::of({8}, {-2, -1.5, 0, 0, 3, -3, 1, -1}), Tensor::of({8}, {2, 3, 2, 0, 0, -2, 1000, 1001})});
  s.add_special({special_values(), special_values()});
  s.add_special({special_values(), Tensor::of({1}, {2})});
  s.add_special({special_values(), Tensor::of({8, 1}, {0, 1, -1, 0.5, -0.5, 3, 1e3, -1e3})});
  s.add_special({s.uniform({129}, 0.5, 2), s.normal({129}, 60)});
});

// --- broadcast operands of many tasks

const Shape kFlat = {67, 1031};

const Cases long_add(Op::add, {}, [](Suite& s) {
  s.add_large({s.normal(kFlat), s.normal({1031})});
  s.add_large({s.normal({17, 1, 19, 1}), s.normal({23, 1, 29})});
});
const Cases long_sub(Op::sub, {}, [](Suite& s) { s.add_large({s.normal(kFlat), s.normal({67, 1})}); });
const Cases long_mul(Op::mul, {}, [](Suite& s) {
  s.add_large({s.normal({9001, 7}), s.normal({9001, 1})});
  s.add_large({s.normal({}), s.normal(kFlat)});
});
const Cases long_compare(Op::compare, {}, [](Suite& s) {
  s.add_large({s.normal(kFlat), s.normal({1031})}, {{"test", std::string("less")}});
});
const Cases long_where(Op::where, {}, [](Suite& s) { s.add_large({s.flags(kFlat), s.normal({1031}), s.normal(kFlat)}); });

}  // namespace
}  // namespace st::conformance
