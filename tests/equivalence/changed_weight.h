// A weight that a host changes between steps.
#pragma once

#include <cstddef>
#include <vector>

#include "model/model.h"

namespace st {

/// Sets a parameter to numbers near `first`.
inline void set_near(Model& model, const char* name, float first) {
  const SlotId id = model.parameter_named(name);
  const Shape& shape = model.slot(id).type.shape;
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + 1e-5F * static_cast<float>(i % 97);
  model.set(id, plain_view("", DType::f32, shape, values.data()));
}

}  // namespace st
