// Whether data can feed a model: asked once, when they meet, and not first at a step.
#pragma once

#include <span>

#include "data/dataset.h"
#include "ir/program.h"

namespace st {

/// Every input of the model needs a field of its name, dtype and shape (with `batch` rows). Fields that no input is named like are left
/// aside. Throws invalid_argument that names the input and what the data has.
void check_input_fields(const Program& model, std::span<const Field> fields, int64_t batch);

}  // namespace st
