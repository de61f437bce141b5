// Checks a host's batch against a model's inputs and binds it to an executor by ranges of rows.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/host_view.h"
#include "base/memory_source.h"
#include "exec/executor.h"
#include "parts/context.h"

namespace st {

/// By slot: whether it is an input that some node reads.
std::vector<bool> inputs_read_by(const Program& program);

class BatchBinding {
 public:
  /// For the inputs of `model` (symbolic, borrowed) that `wanted` marks by slot. Rows with gaps are copied into a contiguous buffer of the
  /// context's memory, allocated on first use.
  BatchBinding(const Program& model, std::vector<bool> wanted, const Context& context);

  const std::vector<bool>& wanted() const { return wanted_; }

  /// Number of rows of the first input that has rows, if it is in [least, most]; else `most`, so that check() reports the error.
  int64_t rows_of(std::span<const HostView> batch, int64_t most, int64_t least = 1) const;

  /// Each wanted input needs a view of its dtype and of its shape with `rows` rows. Throws invalid_argument that shows both.
  void check(std::span<const HostView> batch, int64_t rows) const;

  /// Whether an executor reads any of them.
  bool is_read_by(const Executor& executor) const;

  /// Binds `rows` rows from `first_row` as those inputs that the executor reads. Throws not_finite if they hold NaN, before anything is
  /// computed; on a device they are not searched.
  void bind(std::span<const HostView> batch, int64_t first_row, int64_t rows, Executor& executor);

 private:
  const Program* model_;
  std::vector<bool> wanted_;
  std::shared_ptr<MemorySource> memory_;
  HostOrder* order_;
  std::vector<Memory> compact_;  // by slot
};

}  // namespace st
