// A host's batch against a model's inputs: checked, then bound to an executor row by row.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/memory_source.h"
#include "exec/executor.h"
#include "train/host_view.h"

namespace st {

/// By slot: whether it is an input that a node of the program reads.
std::vector<bool> inputs_read_by(const Program& program);

class BatchBinding {
 public:
  /// For the inputs of `model` (symbolic, borrowed) that are in `wanted`, by slot. Rows with gaps between them are copied together into
  /// memory of `memory`, made when the first are met.
  BatchBinding(const Program& model, std::vector<bool> wanted, std::shared_ptr<MemorySource> memory);

  const std::vector<bool>& wanted() const { return wanted_; }

  /// Rows that the first input with rows has, when they are `least` to `most`; else `most`, and check() will say what is wrong.
  int64_t rows_of(std::span<const HostView> batch, int64_t most, int64_t least = 1) const;

  /// Each wanted input needs a view of its dtype and its shape with `rows` rows. Throws invalid_argument that names both.
  void check(std::span<const HostView> batch, int64_t rows) const;

  /// Rows from `first_row` on become the executor's inputs. Throws not_finite for NaN among them, before anything is computed of it.
  void bind(std::span<const HostView> batch, int64_t first_row, int64_t rows, Executor& executor);

 private:
  const Program* model_;
  std::vector<bool> wanted_;
  std::shared_ptr<MemorySource> memory_;
  std::vector<Memory> compact_;  // by slot
};

}  // namespace st
