#include "team/ranks.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"
#include "data/stream.h"
#include "ir/cuts.h"
#include "model/device_copy.h"
#include "model/parameter_copies.h"
#include "recipe/can_offload.h"
#include "team/rank_agreement.h"
#include "team/step_rows.h"

namespace st {
namespace {

bool is_consequence(const Error& error) { return error.code() == Code::rank_failed; }

}  // namespace

Ranks::Ranks(std::unique_ptr<RankStep> own, const Parts& parts, const PlanOptions& options, bool has_loss)
    : parts_(parts), groups_(mesh_of(parts.recipe), parts.group, own->storage().backend(), parts.is_cancelled), clocks_(groups_) {
  threads_have_copies_ = threads_have_copies(groups_.mesh(), parts.recipe.zero, options.parameters_on_host);
  ranks_.push_back(std::move(own));
  if (!has_loss) return;
  for (size_t here = 1; here < groups_.size(); ++here)
    ranks_.push_back(std::make_unique<RankStep>(this->own().model().without_parameters(), parts_.recipe, parts_.threads, never_));
  plan(options);
  if (ranks_.size() > 1) sync_weights();
  try {
    start();
  } catch (...) {
    stop();
    throw;
  }
}

Ranks::~Ranks() {
  groups_.end_links();
  stop();
}

/// The caller's rank comes last: it is bound by what the others found to fit.
void Ranks::plan(PlanOptions options) {
  BegunPlans begun;
  if (ranks_.size() > 1 && options.begun == nullptr && !options.print) options.begun = &begun;
  for (size_t here = 1; here < ranks_.size(); ++here) plan(here, options);
  plan(0, options);
  const std::vector<StageLink>& links = this->own().step()->executor().plan().program.links;
  if (groups_.is_of_threads())
    groups_.connect_threads(links);
  else if (StageLinks* const stages = groups_.stages(0))
    groups_.connect(*stages, links);
}

void Ranks::plan(size_t here, PlanOptions options) {
  const Mesh& mesh = groups_.mesh();
  const MeshPosition at = groups_.position_of(here);
  const bool is_thread = groups_.is_of_threads() && !groups_.is_alone();
  options.rank = at.data;
  options.stage = at.stage;
  options.tensor_rank = at.tensor;
  options.borrows_parameters = is_thread && mesh.stage > 1 && !threads_have_copies_ && at.data == 0;
  options.sharers = static_cast<int32_t>(here == 0 ? 1 : ranks_.size() - here + 1);  // that are not planned yet
  const auto scopes = options.recompute_scopes == nullptr ? scopes_for_all() : std::nullopt;
  if (scopes) options.recompute_scopes = &*scopes;
  RankStep& rank = *ranks_[here];
  rank.plan(options, groups_, here, parts_.data);
  if (!is_thread) return;
  if (threads_have_copies_)
    rank.step()->leave_parameters_in(own().model());
  else
    rank.step()->share_masters(own().model());
}

/// PlannedStep::scopes_for_all() of the first rank that is planned.
std::optional<std::vector<RegionId>> Ranks::scopes_for_all() const {
  const auto first = std::ranges::find_if(ranks_, [](const auto& rank) { return rank->step() != nullptr; });
  return first == ranks_.end() ? std::nullopt : (*first)->step()->scopes_for_all();
}

void Ranks::start() {
  threads_.resize(ranks_.size() - 1);
  try {
    for (size_t here = 1; here < ranks_.size(); ++here)
      threads_[here - 1].thread = std::thread([this, here, heap = Heap::current()] {
        start_in_default_float_mode();
        const HeapScope owners(heap);
        thread_main(here);
      });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable, text("trainer: cannot start the thread of a rank (", refusal.what(), "); use fewer ranks"));
  }
}

void Ranks::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (Thread& thread : threads_)
    if (thread.thread.joinable()) thread.thread.join();
}

// --- a step

int64_t Ranks::own_rows() const {
  const Recipe& recipe = parts_.recipe;
  return MicroBatches{.per_step = recipe.step_micro_batches(), .ranks = groups_.mesh().data, .rank = groups_.position_of(0).data}.own() *
         recipe.batch;
}

int64_t Ranks::rows_of_all(RankReport own) {
  own.last_step = clocks_.times_in(own.attempts);
  reports_.resize(static_cast<size_t>(groups_.mesh().ranks()));
  exchange_reports(groups_.all(), own, reports_);
  const int64_t rows = st::rows_of_all(groups_.all(), groups_.mesh(), reports_, parts_.recipe.batch);
  clocks_.keep(own.attempts, reports_);
  return rows;
}

void Ranks::begin_step(int64_t attempts) {
  for (size_t here = 0; here < groups_.size(); ++here)
    if (StageLinks* const stages = groups_.stages(here)) stages->runs().clear();
  const int64_t every = parts_.recipe.replica_check;
  compares_weights_ = (every > 0 && attempts % every == 0) || (!groups_.is_of_threads() && !has_met_);
}

void Ranks::begin(const StepStart& start) {
  if (groups_.is_alone()) return own().step()->begin(start);
  begin_step(start.attempts);
  groups_.make_whole();
  if (!threads_.empty()) sync_weights();
  for (const auto& rank : ranks_) rank->step()->begin(start);
  if (std::ranges::any_of(reports_, [](const RankReport& report) { return report.lacks_copies != 0; })) own().step()->gather_copies_first();
  clocks_.begin(start.attempts + 1);
}

void Ranks::begin_host_loss(int64_t attempts) {
  if (groups_.is_alone()) return;
  begin_step(attempts);
  clocks_.begin(attempts + 1);
}

void Ranks::end_host_loss(const RankClocks::Exchanges& exchanges) {
  if (groups_.is_alone()) return;
  clocks_.stop(0, exchanges);
  has_met_ = true;
}

void Ranks::compare_weights(size_t here, const Executor& executor) {
  if (compares_weights_) require_replicas(*groups_.data(here), executor, executor.backend());
}

bool Ranks::run_until(double deadline, const RankStep::Rows& rows) {
  if (groups_.is_alone()) return own().step()->run_until(deadline, own().binding(rows, deadline));
  if (groups_.is_of_threads()) {
    run_threads(rows);
  } else {
    run_rank(0, rows);
    has_met_ = true;
  }
  return true;
}

void Ranks::run_rank(size_t here, const RankStep::Rows& rows) {
  constexpr double kNoDeadline = Executor::kNoDeadline;
  RankStep& rank = *ranks_[here];
  PlannedStep& step = *rank.step();
  compare_weights(here, step.executor());
  clocks_.start(here);
  if (!step.run_until(kNoDeadline, rank.binding(rows, kNoDeadline))) step.throw_end_of_group();
  clocks_.stop(here, {step.exposed_seconds(), step.exchanges()});
}

void Ranks::run_threads(const RankStep::Rows& rows) {
  {
    const std::lock_guard lock(mutex_);
    rows_ = rows;
    working_ = threads_.size();
    ++steps_;
  }
  changed_.notify_all();
  std::exception_ptr own;
  try {
    run_rank(0, rows);
  } catch (...) {
    own = std::current_exception();
    end_group(0, own);
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return working_ == 0; });
  if (own || std::ranges::any_of(threads_, [](const Thread& thread) { return thread.error != nullptr; })) rethrow_first(own);
  ++weights_at_;  // this update; what the host has changed meanwhile is seen by the next step
}

void Ranks::thread_main(size_t here) {
  for (int64_t done = 0;; ++done) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ends_ || steps_ > done; });
    if (ends_) return;
    lock.unlock();
    Thread& self = threads_[here - 1];
    try {
      run_rank(here, rows_);
    } catch (...) {
      self.error = std::current_exception();
      end_group(here, self.error);
    }
    lock.lock();
    --working_;
    changed_.notify_all();
  }
}

void Ranks::end_group(size_t here, const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& why) {
    groups_.abort(here, why.what());
  } catch (...) {
    groups_.abort(here, "an unknown error");
  }
}

void Ranks::rethrow_first(const std::exception_ptr& own) {
  weights_at_ = -1;  // a rank may have got further than another
  has_state_ = false;
  groups_.forget();
  std::exception_ptr first = own;
  int rank = 0;
  const auto is_cause = [](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      return !is_consequence(e);
    } catch (...) {
      return true;
    }
  };
  bool found = own && is_cause(own);
  for (size_t here = 1; here < ranks_.size(); ++here) {
    const std::exception_ptr error = std::exchange(threads_[here - 1].error, nullptr);
    if (!error || found) continue;
    found = is_cause(error);
    if (!found && first) continue;
    first = error;
    rank = static_cast<int>(here);
  }
  try {
    std::rethrow_exception(first);
  } catch (Error& error) {
    if (error.place.rank < 0) error.place.rank = rank;
    throw;
  }
}

bool Ranks::has_updated() const {
  return std::ranges::any_of(ranks_, [](const auto& rank) { return rank->step()->has_updated(); });
}

// --- what threads have of the trainer's state

/// Copies the model's weights to the threads, if they have changed, and to the caller's rank where threads have copies.
void Ranks::sync_weights() {
  Model& model = own().model();
  Backend& backend = own().storage().backend();
  if (const int64_t changes = model.gate().changes(); weights_at_ != changes) {
    const WeightsGate::Reader whole_step(model.gate());
    for (size_t here = threads_have_copies_ ? 0 : 1; here < ranks_.size(); ++here) {
      const Executor& to = ranks_[here]->step()->executor();
      std::optional<WeightsGate::Writer> writer;
      if (here > 0) writer.emplace(ranks_[here]->model().gate());
      if (threads_have_copies_) {
        take_parameters(to, model);
        continue;
      }
      for (const SlotId id : model.parameters())
        if (const Slot& slot = to.plan().program.slot(id); !slot.borrowed && is_here(to.plan().program, slot))
          copy_bytes(backend, model.data(id), backend, to.slot(id).data, slot.type.bytes());
    }
    weights_at_ = changes;
  }
  sync_state();
}

/// Copies the optimizer's state from the first data rank, unless the ranks have it in pieces, which nobody else has.
void Ranks::sync_state() {
  if (has_state_ || parts_.recipe.zero > 0) return;
  Backend& backend = own().storage().backend();
  for (size_t here = 1; here < ranks_.size(); ++here) {
    const MeshPosition at = groups_.position_of(here);
    const int64_t bytes = ranks_[here]->step()->executor().plan().memory.of(Arena::optimizer);
    if (at.data == 0 || bytes == 0) continue;
    const int32_t first = rank_at(groups_.mesh(), {.data = 0, .tensor = at.tensor, .stage = at.stage});
    copy_bytes(backend, ranks_[static_cast<size_t>(first)]->storage().data(Arena::optimizer), backend,
               ranks_[here]->storage().data(Arena::optimizer), bytes);
  }
  has_state_ = true;
}

void Ranks::rewind(int64_t cursor) {
  for (const auto& rank : ranks_) rank->rewind(cursor);
}

// --- looking

std::vector<const Executor*> Ranks::executors() const {
  std::vector<const Executor*> all;
  for (const auto& rank : ranks_)
    if (rank->step() != nullptr) all.push_back(&std::as_const(*rank).step()->executor());
  return all;
}

void Ranks::watch(const std::function<Executor::Watch(size_t rank)>& of_rank) {
  for (size_t here = 0; here < ranks_.size(); ++here)
    if (PlannedStep* const step = ranks_[here]->step()) step->watch(of_rank(here));
}

std::vector<int64_t> Ranks::sent_bytes() const {
  std::vector<int64_t> all;
  for (size_t here = 0; here < groups_.size() && !groups_.is_alone(); ++here) all.push_back(groups_.sent_bytes(here));
  return all;
}

int64_t Ranks::memory_bytes() const {
  int64_t sum = 0;
  for (const auto& rank : ranks_) sum += rank->memory_bytes();
  return sum;
}

void Ranks::trim() {
  for (const auto& rank : ranks_)
    if (PlannedStep* const step = rank->step()) step->trim();
}

}  // namespace st
