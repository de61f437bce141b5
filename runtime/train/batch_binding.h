// A host's batch against a model's inputs: checked, then bound to an executor row by row.
#pragma once

#include <span>
#include <vector>

#include "exec/executor.h"
#include "train/named_view.h"

namespace st {

/// By slot: whether it is an input that a node of the program reads.
std::vector<bool> inputs_read_by(const Program& program);

/// Each input of `model` (symbolic) that is in `wanted` needs a view of its dtype and its shape with `rows` rows. Throws invalid_argument
/// that names both.
void check_batch(const Program& model, const std::vector<bool>& wanted, std::span<const NamedView> batch, int64_t rows);

/// Rows from `first_row` on become the executor's inputs. Throws not_finite for NaN among them, before anything is computed of it.
void bind_rows(const Program& model, const std::vector<bool>& wanted, std::span<const NamedView> batch, int64_t first_row, int64_t rows,
               Executor& executor);

}  // namespace st
