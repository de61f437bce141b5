// One rank of a trainer: its model, the memory and threads that it computes with, its step on the graph's own loss, and its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "data/dataset.h"
#include "exec/storage.h"
#include "model/model.h"
#include "team/batch_binding.h"
#include "team/feed.h"
#include "team/planned_step.h"
#include "team/rank_groups.h"

namespace st {

class RankStep {
 public:
  /// Plans nothing yet. Borrows the recipe and the token, which cancels its steps; `threads` computes with, its caller's included.
  RankStep(std::shared_ptr<Model> model, const Recipe& recipe, int threads, CancelToken& cancelled);

  /// Plans the step and allocates all its memory, for the rank at `here` of this process; reads ahead its rows of `data` (null: each step
  /// is given its batch) from the first on. Throws like PlannedStep.
  void plan(const PlanOptions& options, RankGroups& groups, size_t here, const std::shared_ptr<const Dataset>& data);
  /// Null until planned, which a graph without a loss never is.
  PlannedStep* step() { return step_.get(); }
  const PlannedStep* step() const { return step_.get(); }

  /// The rows of a step.
  struct Rows {
    std::optional<std::span<const HostView>> batch;  // the host's; empty: the data's
    bool are_of_rank = false;                        // the batch has this rank's rows alone
    int64_t items = 0;                               // taken from the data before the step
  };
  /// For PlannedStep::run_until: binds these rows (borrowed), and waits for those of the data until `deadline`. There are none once a group
  /// of the rank has ended. Valid until the next call.
  const PlannedStep::Bind& binding(const Rows& rows, double deadline);
  /// Continues at item `cursor` of the data.
  void rewind(int64_t cursor);

  Model& model() { return *model_; }
  Storage& storage() { return storage_; }
  const Storage& storage() const { return storage_; }
  Workers& workers() { return *workers_; }
  /// Checks batches against the inputs that the graph reads.
  const BatchBinding& inputs() const { return inputs_; }
  int64_t memory_bytes() const;  // arenas and read-ahead buffers, besides what the model holds

 private:
  bool bind(int64_t first_row, int64_t count, Executor& executor);
  bool bind_from_data(int64_t first_row, int64_t count, Executor& executor);

  const std::shared_ptr<Model> model_;
  const Recipe& recipe_;
  CancelToken& cancelled_;
  Storage storage_;
  const std::unique_ptr<Workers> workers_;
  BatchBinding inputs_;
  const RankGroups* groups_ = nullptr;
  size_t here_ = 0;
  std::unique_ptr<PlannedStep> step_;
  std::unique_ptr<Feed> feed_;  // null: no data, too few micro-batches, or a stage that reads no input
  // The current run's.
  Rows rows_;
  double deadline_ = 0;
  const PlannedStep::Bind bind_;
};

}  // namespace st
