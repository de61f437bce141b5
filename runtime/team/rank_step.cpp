#include "team/rank_step.h"

#include <functional>
#include <utility>

namespace st {

RankStep::RankStep(std::shared_ptr<Model> model, const Recipe& recipe, int threads, CancelToken& cancelled)
    : model_(std::move(model)),
      recipe_(recipe),
      cancelled_(cancelled),
      storage_(model_->context().backend()),
      workers_(model_->context().make_workers(threads)),
      inputs_(model_->program(), inputs_read_by(model_->program()), model_->context()),
      bind_(std::bind_front(&RankStep::bind, this)) {
  storage_.keep_in_file(recipe.arenas_in_file(), recipe.offload_folder);
}

void RankStep::plan(const PlanOptions& options, RankGroups& groups, size_t here, const std::shared_ptr<const Dataset>& data) {
  groups_ = &groups;
  here_ = here;
  step_ = std::make_unique<PlannedStep>(*model_, recipe_, storage_, *workers_, cancelled_, options, groups.data(here), groups.stages(here),
                                        groups.tensor(here));
  if (!data || options.rank >= recipe_.step_micro_batches() || !inputs_.is_read_by(step_->executor())) return;
  feed_ = std::make_unique<Feed>(
      data, static_cast<uint64_t>(recipe_.seed),
      MicroBatches{.rows = recipe_.batch, .per_step = recipe_.step_micro_batches(), .ranks = recipe_.data_ranks(), .rank = options.rank}, 0,
      model_->context().memory());
}

const PlannedStep::Bind& RankStep::binding(const Rows& rows, double deadline) {
  rows_ = rows;
  deadline_ = deadline;
  return bind_;
}

/// A batch of one data rank has its micro-batches one after another.
bool RankStep::bind(int64_t first_row, int64_t count, Executor& executor) {
  if (!rows_.batch) return bind_from_data(first_row, count, executor);
  if (rows_.are_of_rank) first_row = first_row / recipe_.data_ranks() / recipe_.batch * recipe_.batch;
  inputs_.bind(*rows_.batch, first_row, count, executor);
  return true;
}

bool RankStep::bind_from_data(int64_t first_row, int64_t count, Executor& executor) {
  if (!feed_) return true;
  if (step_->begins_again(first_row)) feed_->rewind(rows_.items);
  const auto is_over = [this] { return cancelled_.is_set() || groups_->has_ended(here_); };
  const auto batch = feed_->next({step_->is_finding_nan() ? Executor::kNoDeadline : deadline_, is_over});
  if (!batch) return false;
  inputs_.check(*batch, count);
  inputs_.bind(*batch, 0, count, executor);
  return true;
}

void RankStep::rewind(int64_t cursor) {
  if (feed_) feed_->rewind(cursor);
}

int64_t RankStep::memory_bytes() const {
  return storage_.memory_bytes() + (step_ ? step_->own_bytes() : 0) + (feed_ ? feed_->buffer_bytes() : 0);
}

}  // namespace st
