#include "train/rank_team.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/heap.h"
#include "base/json_line.h"
#include "base/os/machine.h"
#include "ir/cuts.h"
#include "train/device_copy.h"
#include "train/parameter_copies.h"
#include "train/rank_agreement.h"
#include "train/step_rows.h"

namespace st {
namespace {

bool is_consequence(const Error& error) { return error.code() == Code::rank_failed; }

}  // namespace

RankTeam::Member::Member(int32_t own_rank, const Model& of, int threads)
    : rank(own_rank),
      model(of.without_parameters()),
      storage(of.context().backend()),
      workers(of.context().make_workers(threads)),
      inputs(model->program(), inputs_read_by(model->program()), of.context().memory()) {}

RankTeam::RankTeam(const Parts& parts, const PlanOptions& options)
    : parts_(parts),
      groups_(mesh_of(parts.recipe), parts.group, parts.storage.backend(), parts.is_cancelled),
      clocks_(groups_.size()),
      timeline_(static_cast<size_t>(parts.recipe.ranks)) {
  if (!groups_.is_of_threads()) return;
  const Mesh& mesh = groups_.mesh();
  Model& model = parts_.model;
  const Recipe& recipe = parts_.recipe;
  Context& context = model.context();
  for (int32_t rank = 1; rank < recipe.ranks; ++rank) {
    members_.push_back(std::make_unique<Member>(rank, model, parts_.threads));
    Member& member = *members_.back();
    PlanOptions own = options;
    const auto here = static_cast<size_t>(rank);
    const MeshPosition at = groups_.position_of(here);
    own.rank = at.data;
    own.stage = at.stage;
    own.tensor_rank = at.tensor;
    own.borrows_parameters = mesh.stage > 1 && mesh.tensor == 1 && at.data == 0;
    own.sharers = static_cast<int32_t>(recipe.ranks) - rank + 1;  // the trainer comes after all of them
    const auto scopes = scopes_for_all();
    if (scopes) own.recompute_scopes = &*scopes;
    member.storage.keep_in_file(recipe.arenas_in_file(), recipe.offload_folder);
    member.step = std::make_unique<PlannedStep>(*member.model, recipe, member.storage, *member.workers, member.never, own,
                                                &groups_.data(here), groups_.stages(here), groups_.tensor(here));
    mesh.tensor > 1 ? member.step->leave_parameters_in(model) : member.step->share_masters(model);
    if (parts_.data && at.data < recipe.step_micro_batches() && member.inputs.is_read_by(member.step->executor()))
      member.feed = std::make_unique<Feed>(
          parts_.data, static_cast<uint64_t>(recipe.seed),
          MicroBatches{.rows = recipe.batch, .per_step = recipe.step_micro_batches(), .ranks = mesh.data, .rank = at.data}, 0,
          context.memory());
  }
  groups_.connect_threads(members_.front()->step->executor().plan().program.links);
  sync_weights();
  try {
    start();
  } catch (...) {
    stop();
    throw;
  }
}

RankTeam::~RankTeam() { stop(); }

void RankTeam::start() {
  try {
    for (const auto& member : members_)
      member->thread = std::thread([this, &member = *member, heap = Heap::current()] {
        start_in_default_float_mode();
        const HeapScope owners(heap);
        thread_main(member);
      });
  } catch (const std::system_error& refusal) {
    fail(Code::unavailable, text("trainer: cannot start the thread of a rank (", refusal.what(), "); use fewer ranks"));
  }
}

void RankTeam::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (const auto& member : members_)
    if (member->thread.joinable()) member->thread.join();
}

// --- a step

void RankTeam::begin(double lr, int64_t number, int64_t attempts, int64_t items, int64_t rows, double loss_scale) {
  items_ = items;
  step_ = attempts + 1;
  for (size_t here = 0; here < groups_.size(); ++here)
    if (StageLinks* const stages = groups_.stages(here)) stages->runs().clear();
  const int64_t every = parts_.recipe.replica_check;
  compares_weights_ = (every > 0 && attempts % every == 0) || (!groups_.is_of_threads() && !has_met_);
  if (groups_.is_of_threads()) {
    groups_.make_whole();
    sync_weights();
    for (const auto& member : members_) member->step->begin(lr, number, attempts, rows, loss_scale);
  }
  start_clock();
}

void RankTeam::start_clock(size_t rank) { clocks_[rank] = {.exchanged = groups_.seconds(rank), .began = os::seconds()}; }

RankTimes RankTeam::times_of(size_t here) const {
  const Clock& clock = clocks_[here];
  return {.seconds = clock.ended - clock.began,
          .exchange = groups_.seconds(here) - clock.exchanged,
          .exposed = here == 0 ? exposed_ : members_[here - 1]->step->exposed_seconds()};
}

RankTeam::Times RankTeam::take_times(double exposed, const ExchangeQueue* exchanges) {
  exposed_ = exposed;
  exchanges_ = exchanges;
  timed_step_ = step_;
  own_times_ = times_of(0);
  if (groups_.is_of_threads()) {
    std::vector<RankTimes>& ranks = timeline_.add(step_);
    for (size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = times_of(rank);
  }
  const bool is_known = !timeline_.steps().empty() && timeline_.steps().back().step == (groups_.is_of_threads() ? step_ : step_ - 1);
  return {.exchange = own_times_.exchange,
          .hidden = own_times_.hidden(),
          .straggler = is_known ? timeline_.steps().back().straggler() : std::numeric_limits<double>::quiet_NaN()};
}

PipelineTimes RankTeam::pipeline_times() const {
  return shared_times_.step == timed_step_ && timed_step_ == step_ && !shared_times_.lanes.empty() ? shared_times_ : own_pipeline_times();
}

void RankTeam::share_pipeline_times() {
  if (!groups_.is_of_threads() && groups_.mesh().stage > 1) shared_times_ = gather_lanes(groups_.all(), own_pipeline_times());
}

PipelineTimes RankTeam::own_pipeline_times() const {
  PipelineTimes times{.step = timed_step_, .lanes = {}};
  if (timed_step_ == 0 || timed_step_ != step_) return times;
  for (size_t here = 0; here < groups_.size(); ++here) {
    const StageLinks* const stages = groups_.stages(here);
    if (stages == nullptr) return times;
    const std::span<const StageRun> runs = stages->runs().all();
    if (runs.empty()) return {.step = timed_step_, .lanes = {}};  // a step whose loss the host computes is not recorded
    const MeshPosition at = groups_.position_of(here);
    times.lanes.push_back({groups_.rank_of(here), at.stage, at.data, at.tensor, {runs.begin(), runs.end()}});
    for (StageRun& run : times.lanes.back().runs) run.action.micro_batch = run.action.micro_batch * groups_.mesh().data + at.data;
  }
  return times;
}

std::string RankTeam::timeline_json() const {
  const PipelineTimes pipeline = pipeline_times(), own = own_pipeline_times();
  const auto us = [](double seconds) { return std::llround(seconds * 1e6); };
  std::vector<std::string> ranks;
  for (size_t here = 0; here < clocks_.size() && timed_step_ > 0 && timed_step_ == step_; ++here) {
    const Clock& clock = clocks_[here];
    const ExchangeQueue* exchanges = here == 0 ? exchanges_ : members_[here - 1]->step->exchanges();
    JsonLine rank;
    rank.add("rank", groups_.rank_of(here)).add("step", timed_step_);
    (here == 0 ? own_times_ : times_of(here)).add_to(rank);
    rank.add("began_us", us(clock.began)).add("ended_us", us(clock.ended));
    rank.add_json("computed_us", computing_json(clock.began, clock.ended, *exchanges));
    rank.add_json("exchanges", groups_.data(here).recorder().json());
    if (!own.lanes.empty()) pipeline.add_to(rank, own.lanes[here]);
    ranks.push_back(rank.text());
  }
  JsonLine all;
  return all.add_json("steps", timeline_.json()).add_json("ranks", json_list(ranks)).text();
}

void RankTeam::keep_pieces_in(const Executor& own) {
  own_ = &own;
  const WeightsGate::Reader whole_step(parts_.model.gate());
  take_parameters(own, parts_.model);
}

void RankTeam::sync_weights() {
  Backend& backend = parts_.storage.backend();
  const int64_t changes = parts_.model.gate().changes();
  if (weights_at_ != changes) {
    const WeightsGate::Reader whole_step(parts_.model.gate());
    for (const auto& member : members_) {
      const WeightsGate::Writer writer(member->model->gate());
      const Executor& to = member->step->executor();
      if (groups_.mesh().tensor > 1) {
        take_parameters(to, parts_.model);
        continue;
      }
      for (const SlotId id : parts_.model.parameters())
        if (const Slot& slot = to.plan().program.slot(id); !slot.borrowed && is_here(to.plan().program, slot))
          copy_bytes(backend, parts_.model.data(id), backend, to.slot(id).data, slot.type.bytes());
    }
    if (own_ != nullptr) take_parameters(*own_, parts_.model);
    weights_at_ = changes;
  }
  if (has_state_ || parts_.recipe.zero > 0) return;  // in pieces: nobody else has them
  for (const auto& member : members_) {
    const MeshPosition at = groups_.position_of(static_cast<size_t>(member->rank));
    const int64_t bytes = member->step->executor().plan().memory.of(Arena::optimizer);
    if (at.data == 0 || bytes == 0) continue;
    const int32_t first = rank_at(groups_.mesh(), {.data = 0, .tensor = at.tensor, .stage = at.stage});
    const Storage& from = first == 0 ? parts_.storage : members_[static_cast<size_t>(first) - 1]->storage;
    copy_bytes(backend, from.data(Arena::optimizer), backend, member->storage.data(Arena::optimizer), bytes);
  }
  has_state_ = true;
}

int64_t RankTeam::own_rows() const {
  const Recipe& recipe = parts_.recipe;
  return MicroBatches{.per_step = recipe.step_micro_batches(), .ranks = groups_.mesh().data, .rank = groups_.position_of(0).data}.own() *
         recipe.batch;
}

int64_t RankTeam::rows_of_all(RankReport own) {
  if (own.attempts == timed_step_) own.last_step = own_times_;
  reports_.resize(static_cast<size_t>(parts_.recipe.ranks));
  exchange_reports(groups_.all(), own, reports_);
  const int64_t rows = st::rows_of_all(groups_.all(), groups_.mesh(), reports_, parts_.recipe.batch);
  if (std::ranges::all_of(reports_, [](const RankReport& report) { return report.last_step.seconds > 0; }))
    std::ranges::transform(reports_, timeline_.add(own.attempts).begin(), &RankReport::last_step);
  return rows;
}

bool RankTeam::any_lacks_copies() const {
  return std::ranges::any_of(reports_, [](const RankReport& report) { return report.lacks_copies != 0; });
}

void RankTeam::run(std::optional<std::span<const HostView>> batch, const std::function<void()>& own_part) {
  if (!groups_.is_of_threads()) {
    own_part();
    clocks_[0].ended = os::seconds();
    has_met_ = true;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    batch_ = batch;
    working_ = members_.size();
    ++steps_;
  }
  changed_.notify_all();
  std::exception_ptr own;
  try {
    own_part();
    clocks_[0].ended = os::seconds();
  } catch (...) {
    own = std::current_exception();
    end_group(0, own);
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return working_ == 0; });
  if (own || std::ranges::any_of(members_, [](const auto& member) { return member->error != nullptr; })) rethrow_first(own);
  ++weights_at_;  // this update; what the host has changed meanwhile is seen by the next step
}

void RankTeam::thread_main(Member& member) {
  for (int64_t done = 0;; ++done) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ends_ || steps_ > done; });
    if (ends_) return;
    lock.unlock();
    try {
      run_step(member);
    } catch (...) {
      member.error = std::current_exception();
      end_group(static_cast<size_t>(member.rank), member.error);
    }
    lock.lock();
    --working_;
    changed_.notify_all();
  }
}

void RankTeam::run_step(Member& member) {
  const auto here = static_cast<size_t>(member.rank);
  const auto bind = [&](int64_t first_row, int64_t rows, Executor& executor) {
    if (batch_) {
      member.inputs.bind(*batch_, first_row, rows, executor);
      return true;
    }
    if (!member.feed) return true;
    if (member.step->begins_again(first_row)) member.feed->rewind(items_);
    const auto batch = member.feed->next({Executor::kNoDeadline, [&] { return groups_.has_ended(here); }});
    require(batch.has_value(), Code::rank_failed, "step: another rank has ended it");
    member.inputs.check(*batch, rows);
    member.inputs.bind(*batch, 0, rows, executor);
    return true;
  };
  if (compares_weights_) require_replicas(groups_.data(here), member.step->executor(), parts_.storage.backend());
  start_clock(here);
  member.step->run_until(Executor::kNoDeadline, std::ref(bind));
  clocks_[here].ended = os::seconds();
}

void RankTeam::end_group(size_t here, const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& why) {
    groups_.abort(here, why.what());
  } catch (...) {
    groups_.abort(here, "an unknown error");
  }
}

void RankTeam::rethrow_first(const std::exception_ptr& own) {
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
  for (const auto& member : members_) {
    const std::exception_ptr error = std::exchange(member->error, nullptr);
    if (!error || found) continue;
    found = is_cause(error);
    if (!found && first) continue;
    first = error;
    rank = member->rank;
  }
  try {
    std::rethrow_exception(first);
  } catch (Error& error) {
    if (error.place.rank < 0) error.place.rank = rank;
    throw;
  }
}

void RankTeam::rewind(int64_t cursor) {
  for (const auto& member : members_)
    if (member->feed) member->feed->rewind(cursor);
}

void RankTeam::trim() {
  for (const auto& member : members_) member->step->trim();
}

std::optional<std::vector<RegionId>> RankTeam::scopes_for_all() const {
  const auto first = std::ranges::find_if(members_, [](const auto& member) { return member->step != nullptr; });
  return first == members_.end() ? std::nullopt : (*first)->step->scopes_for_all();
}

bool RankTeam::has_updated() const {
  return std::ranges::any_of(members_, [](const auto& member) { return member->step->has_updated(); });
}

void RankTeam::append_executors(std::vector<const Executor*>& to) const {
  for (const auto& member : members_) to.push_back(&member->step->executor());
}

void RankTeam::watch(const std::function<Executor::Watch(size_t rank)>& of_rank) {
  for (size_t i = 0; i < members_.size(); ++i) members_[i]->step->watch(of_rank(i + 1));
}

std::vector<int64_t> RankTeam::sent_bytes() const {
  std::vector<int64_t> all;
  for (size_t here = 0; here < groups_.size(); ++here) all.push_back(groups_.sent_bytes(here));
  return all;
}

int64_t RankTeam::memory_bytes() const {
  int64_t sum = 0;
  for (const auto& member : members_)
    sum += member->storage.memory_bytes() + member->step->own_bytes() + (member->feed ? member->feed->buffer_bytes() : 0);
  return sum;
}

}  // namespace st
