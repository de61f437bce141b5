// Checks that a dataset fits a model's inputs, once, before the first step.
#pragma once

#include <span>

#include "data/dataset.h"
#include "ir/program.h"

namespace st {

/// Every input of the model needs a field of its name, dtype and shape (with `batch` rows). Other fields are ignored. Throws
/// invalid_argument with the input and the dataset's fields.
void check_input_fields(const Program& model, std::span<const Field> fields, int64_t batch);

}  // namespace st
