#include "conformance.h"

namespace st::conformance {
namespace {

/// The case with x in 16 bits beside gamma and beta in f32: inputs 1 to `scales`.
void add_wide_scales(Suite& s, std::vector<Tensor> in, std::vector<int32_t> f32) {
  OpCase& c = s.add_special(std::move(in));
  c.dtypes = {DType::bf16, DType::f16};
  c.statistics = std::move(f32);
}

// Rows of 0, 1 and many elements.
const Shape kForward[] = {{37}, {3, 37}, {2, 3, 16}, {129, 1}, {1, 129}, {0, 37}, {70, 513}, {2, 3, 4}};
const Shape kBackward[] = {{37}, {3, 37}, {2, 3, 16}, {1, 129}, {0, 37}, {300, 129}};

// x - mean cancels and rstd multiplies all of a row's elements: relative to the largest.
const Cases layer_norm_cases(Op::layer_norm, {.each = 4, .largest = 8}, [](Suite& s) {
  for (const Shape& x : kForward) {
    const Shape width = {x.last()};
    s.add({s.normal(x, 2, 1), s.normal(width), s.normal(width)});
    s.add({s.normal(x, 2, 1), s.normal(width), s.normal(width)}, {{"epsilon", 0.1}});
  }
  // Far from zero, where sums of the raw elements would lose every digit of the variance; and rows whose first quarter, from which the
  // origin is taken, differs from the rest, so that the variance's error may be five times as large. Not in f64: the reference's own mean
  // is no better.
  std::vector<Tensor> far = {s.normal({5, 200}, 1, 1e4)};
  for (const int64_t width : {700, 5000}) {
    Tensor& x = far.emplace_back(s.normal({3, width}, 1, 1e3));
    for (int64_t i = 0; i < x.elements(); ++i)
      if (i % width < width / 4) x.set(i, x.at(i) - 1e3);
  }
  for (const Tensor& x : far) {
    const Shape width = {x.shape().last()};
    OpCase& c = s.add_special({x, s.normal(width), s.normal(width)});
    c.tolerance = {.each = 4, .largest = 5 * 8};
    c.dtypes = {DType::f32, DType::bf16, DType::f16};
  }
  for (const Shape& x : large_rows())  // a mean near zero would consist of rounding errors
    s.add_large({s.uniform(x, -2, 4), s.normal({x.last()}), s.normal({x.last()})});
  for (const Shape& x : kForward) add_wide_scales(s, {s.normal(x, 2, 1), s.normal({x.last()}), s.normal({x.last()})}, {1, 2});
});

// rstd multiplies all of a row's elements: a few units of each.
const Cases rms_norm_cases(Op::rms_norm, {.each = 8}, [](Suite& s) {
  for (const Shape& x : kForward) {
    OpCase& c = s.add({s.normal(x, 2, 1), s.normal({x.last()})});
    if (x.last() == 1) c.parameters.clear();  // a step function around 0, too steep for differences
    s.add({s.normal(x, 2, 1), s.normal({x.last()})}, {{"epsilon", 0.1}});
  }
  for (const Shape& x : large_rows()) s.add_large({s.uniform(x, -3, 3), s.normal({x.last()})});
  for (const Shape& x : kForward) add_wide_scales(s, {s.normal(x, 2, 1), s.normal({x.last()})}, {1});
});

// dgamma and dbeta sum over rows: some units of the largest element.
const Cases layer_norm_backward_cases(Op::layer_norm_backward, {.each = 4, .largest = 16}, [](Suite& s) {
  const auto reference = make_reference();
  for (const Shape& x : kBackward) {
    const Shape width = {x.last()};
    const OpCase forward{.op = Op::layer_norm, .name = "forward", .in = {s.normal(x, 2, 1), s.normal(width), s.normal(width)}};
    const auto out = run(*reference, forward).out;
    const std::vector<Tensor> in = {forward.in[0], forward.in[1], out[1], out[2], s.normal(x)};
    s.add(in).statistics = {2, 3};
    add_wide_scales(s, in, {1, 2, 3});
  }
  for (const Shape& x : large_rows())
    s.add_large({s.uniform(x, -1, 1), s.normal({x.last()}), s.uniform({x[0]}, -0.1, 0.1), s.uniform({x[0]}, 0.05, 1), s.uniform(x, -1, 1)});
});

const Cases rms_norm_backward_cases(Op::rms_norm_backward, {.each = 4, .largest = 16}, [](Suite& s) {
  const auto reference = make_reference();
  for (const Shape& x : kBackward) {
    const OpCase forward{.op = Op::rms_norm, .name = "forward", .in = {s.normal(x, 2, 1), s.normal({x.last()})}};
    const std::vector<Tensor> in = {forward.in[0], forward.in[1], run(*reference, forward).out[1], s.normal(x)};
    s.add(in).statistics = {2};
    add_wide_scales(s, in, {1, 2});
  }
  for (const Shape& x : large_rows())
    s.add_large({s.uniform(x, -1, 1), s.normal({x.last()}), s.uniform({x[0]}, 0.05, 1), s.uniform(x, -1, 1)});
});

}  // namespace
}  // namespace st::conformance
