// What every optimizer is tried on: a gradient, its factor, whether the step is skipped, the rates.
#pragma once

#include "conformance.h"
#include "ir/optimizer_state.h"

namespace st::conformance {

/// Adds cases of `op` with these attributes: each shape, skipped or not, the first update and a later one, with a value's clip and a
/// group's rate. States begin as positive numbers, which a variance must be, and far from their squares, so that a
/// centered variance is far from 0.
inline void add_optimizer_cases(Suite& s, Op op, const Attrs& given, const std::vector<Shape>& over) {
  for (const Shape& shape : over)
    for (const bool skip : {false, true})
      for (const double number : {1.0, 7.0}) {
        Attrs attrs = given;
        if (number == 7) {
          attrs.set("clip_value", 0.3);
          attrs.set("lr_scale", 0.5);
        }
        OpCase& c = s.add({s.normal(shape), Tensor::scalar(0.25, DType::f32), Tensor::scalar(skip, DType::boolean),
                           Tensor::of({2}, {1e-3, number}, DType::f64)},
                          attrs);
        c.slots = {s.normal(shape)};
        for (const OptimizerState& state : optimizer_state(op, make_attrs(op, attrs), {.dtype = DType::f32, .shape = shape, .layout = {}}))
          c.slots.push_back(s.uniform(state.type.shape, 0.05, 0.1));
        c.dtypes = {DType::f32, DType::bf16, DType::f16};
        c.statistics = {1};
      }
}

}  // namespace st::conformance
