// One step of every optimizer, and the average of parameters; adamw_8bit_test.cpp tests what is specific to that one.
#include <limits>

#include "conformance.h"
#include "ir/optimizer_state.h"

namespace st::conformance {
namespace {

/// A gradient, its factor, whether the step is skipped, the rate and the number of the update.
std::vector<Tensor> step_inputs(Suite& s, const Shape& shape, bool skip, double rate, double number) {
  return {s.normal(shape), Tensor::scalar(0.25, DType::f32), Tensor::scalar(skip, DType::boolean),
          Tensor::of({2}, {rate, number}, DType::f64)};
}

/// The parameter, and states that start as positive numbers, as a variance must be, and far from their squares, so that a centered variance
/// is far from 0. Codes start at 0.
std::vector<Tensor> step_slots(Suite& s, const OpCase& c) {
  const Shape& shape = c.in[0].shape();
  std::vector<Tensor> slots = {s.normal(shape)};
  for (const OptimizerState& state : optimizer_state(c.op, make_attrs(c.op, c.attrs), {.dtype = DType::f32, .shape = shape, .layout = {}}))
    slots.push_back(state.type.dtype == DType::u8 ? Tensor(DType::u8, state.type.shape) : s.uniform(state.type.shape, 0.05, 0.1));
  return slots;
}

/// Each shape, skipped or not, the first update and a later one, with clip_value and a group's lr_scale.
std::function<void(Suite&)> steps(const std::vector<Attrs>& all, const std::vector<Shape>& over = shapes()) {
  return [=](Suite& s) {
    for (const Attrs& given : all)
      for (const Shape& shape : over)
        for (const bool skip : {false, true})
          for (const double number : {1.0, 7.0}) {
            Attrs attrs = given;
            if (number == 7) {
              attrs.set("clip_value", 0.3);
              attrs.set("lr_scale", 0.5);
            }
            OpCase& c = s.add(step_inputs(s, shape, skip, 1e-3, number), attrs);
            c.slots = step_slots(s, c);
            c.dtypes = {DType::f32, DType::bf16, DType::f16};
            c.statistics = {1};
          }
  };
}

// A division and a square root besides products; the parameter is rounded once.
const Cases adamw_cases(Op::adamw, {.each = 4, .largest = 1},
                        steps({{}, {{"weight_decay", 0.0}}, {{"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 1e-6}}}));
const Cases adagrad_cases(Op::adagrad, {.each = 4, .largest = 1},
                          steps({{}, {{"weight_decay", 0.1}, {"rate_decay", 0.5}}, {{"initial_accumulator_value", 0.5}}}));

// Sums of products of either sign; the parameter is rounded once.
const Cases sgd_cases(Op::sgd, {.each = 4, .largest = 1},
                      steps({{},
                             {{"weight_decay", 0.1}},
                             {{"momentum", 0.9}},
                             {{"momentum", 0.9}, {"nesterov", true}},
                             {{"momentum", 0.9}, {"dampening", 0.5}, {"weight_decay", 0.1}}}));

// The moment is a difference if the gradient opposes it. Where the direction is near 0, rounding may change its sign; with these random
// operands none is.
const Cases lion_cases(Op::lion, {.each = 8, .largest = 1}, steps({{}, {{"weight_decay", 0.1}}, {{"beta1", 0.5}, {"beta2", 0.75}}}));

// Centered: the root of a difference of two similar numbers.
const Cases rmsprop_cases(Op::rmsprop, {.each = 8, .largest = 1},
                          steps({{},
                                 {{"weight_decay", 0.1}, {"epsilon", 1e-4}},
                                 {{"momentum", 0.9}},
                                 {{"centered", true}, {"epsilon", 1e-2}},
                                 {{"centered", true}, {"momentum", 0.5}, {"epsilon", 1e-2}}}));

// Means of squares over rows and columns, in float lanes.
const Cases adafactor_cases(
    Op::adafactor, {.each = 16, .largest = 4},
    steps({{}, {{"beta2_decay", -0.5}, {"epsilon", 1e-6}, {"epsilon2", 1e-2}, {"clip_threshold", 1.5}, {"weight_decay", 0.1}}}));

// Fifteen successive products in float.
const Cases muon_cases(
    Op::muon, {.each = 64, .largest = 64},
    steps({{}, {{"nesterov", false}, {"ns_steps", int64_t{2}}, {"adjust_lr", std::string("match_rms_adamw")}, {"weight_decay", 0.0}}},
          {{1, 1}, {3, 5}, {5, 3}, {33, 17}, {40, 129}, {0, 4}}));

// One subtraction, one multiplication and one addition per element: the difference may cancel.
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

// --- one step of many tasks for each

constexpr Op kOptimizers[] = {Op::adamw, Op::adamw_8bit, Op::sgd, Op::lion, Op::rmsprop, Op::adagrad, Op::adafactor, Op::muon};

const std::vector<Cases> kLargeSteps = [] {
  std::vector<Cases> all;
  for (const Op op : kOptimizers)
    all.emplace_back(op, Tolerance{.largest = 16}, [op](Suite& s) {
      const Attrs attrs = op == Op::sgd || op == Op::rmsprop ? Attrs{{"momentum", 0.9}} : Attrs{};
      OpCase& c =
          s.add_large(step_inputs(s, op == Op::adafactor || op == Op::muon ? Shape{203, 131} : Shape{67, 1031}, false, 1e-2, 3), attrs);
      c.slots = step_slots(s, c);
    });
  return all;
}();

// --- other effects of a step

class Updates : public ::testing::TestWithParam<const OpCase*> {
 protected:
  OpCase skipped(const OpCase& c) const {
    OpCase made = c;
    made.in[c.op == Op::average ? 1 : 2] = Tensor::scalar(1, DType::boolean);
    return made;
  }
};

TEST_P(Updates, LeaveEveryBitWhereTheyAreSkipped) {
  OpCase c = skipped(*GetParam());
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (c.in[0].elements() > 0) c.in[0].set(0, nan);
  if (c.op != Op::average) c.in[1] = Tensor::scalar(nan, DType::f32);
  for (const BackendUnderTest& candidate : backends_and_reference()) EXPECT_EQ(run(*candidate.make(), c).slots, c.slots) << candidate.name;
}

// If products read a parameter in 16 bits, an update also writes the 16-bit copy, as a cast would; parameter and state are the same
// without.
TEST_P(Updates, LeaveAWorkingCopy) {
  if (GetParam()->op == Op::average) return;
  for (const BackendUnderTest& candidate : backends_and_reference()) {
    const auto backend = candidate.make();
    const std::vector<Tensor> without = run(*backend, *GetParam()).slots;
    for (const DType low : {DType::bf16, DType::f16}) {
      OpCase c = *GetParam();
      c.slots.emplace_back(low, c.slots[0].shape());
      std::vector<Tensor> with = run(*backend, c).slots;
      EXPECT_EQ(run(*backend, skipped(c)).slots.back(), c.slots.back()) << candidate.name << " was skipped";
      const OpCase cast{.op = Op::cast, .name = "cast", .in = {with[0]}, .attrs = {{"dtype", std::string(name_of(low))}}};
      EXPECT_EQ(with.back(), run(*backend, cast).out[0]) << candidate.name << " to " << name_of(low);
      with.pop_back();
      EXPECT_EQ(with, without) << candidate.name << " to " << name_of(low);
    }
  }
}

bool is_update(const OpCase& c) {
  if (c.op == Op::average) return c.in[1].at(0) == 0;
  return info_of(c.op).shape_rule == "optimizer" && c.in[2].at(0) == 0;
}

INSTANTIATE_TEST_SUITE_P(All, Updates, ::testing::ValuesIn(cases_that(is_update)), name_of_case);

}  // namespace
}  // namespace st::conformance
