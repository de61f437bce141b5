#include "train/rank_team.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "base/error.h"
#include "comm/local/thread_group.h"

namespace st {
namespace {

constexpr int64_t kCopyPiece = 1 << 20;  // bytes of a copy at a time

void copy(Backend& backend, std::byte* to, const std::byte* from, int64_t bytes) {
  std::vector<std::byte> piece(static_cast<size_t>(std::min(bytes, kCopyPiece)));
  for (int64_t at = 0; at < bytes; at += kCopyPiece) {
    const int64_t count = std::min(kCopyPiece, bytes - at);
    backend.to_host(piece.data(), from + at, count);
    backend.to_device(to + at, piece.data(), count);
  }
}

bool is_consequence(const Error& error) { return error.code() == Code::rank_failed; }

}  // namespace

RankTeam::RankTeam(const Parts& parts, const PlanOptions& options) : parts_(parts), group_(static_cast<size_t>(parts.recipe.ranks)) {
  connect();
  Model& model = parts_.model;
  const Recipe& recipe = parts_.recipe;
  Context& context = model.context();
  for (int32_t rank = 1; rank < recipe.ranks; ++rank) {
    std::shared_ptr<Model> replica = model.clone();
    Storage storage = replica->storage().with_same_parameters();
    members_.push_back(
        std::unique_ptr<Member>(new Member{.rank = rank,
                                           .model = std::move(replica),
                                           .storage = std::move(storage),
                                           .workers = context.make_workers(parts_.threads),
                                           .cancelled = CancelToken(),
                                           .step = nullptr,
                                           .inputs = BatchBinding(model.program(), inputs_read_by(model.program()), context.memory()),
                                           .feed = nullptr,
                                           .error = nullptr,
                                           .thread = {}}));
    Member& member = *members_.back();
    PlanOptions own = options;
    own.rank = rank;
    member.step = std::make_unique<PlannedStep>(*member.model, recipe, member.storage, *member.workers, member.cancelled, own,
                                                &*group_[static_cast<size_t>(rank)]);
    if (parts_.data && rank < recipe.step_micro_batches())
      member.feed = std::make_unique<Feed>(
          parts_.data, static_cast<uint64_t>(recipe.seed),
          MicroBatches{.rows = recipe.batch, .per_step = recipe.step_micro_batches(), .ranks = recipe.ranks, .rank = rank}, 0,
          context.memory());
  }
  weights_at_ = model.gate().changes();
  for (const auto& member : members_) member->thread = std::thread([this, &member = *member] { live(member); });
}

RankTeam::~RankTeam() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (const auto& member : members_)
    if (member->thread.joinable()) member->thread.join();
}

void RankTeam::connect() {
  std::vector<std::unique_ptr<Transport>> ends = make_thread_group(static_cast<int>(group_.size()));
  for (size_t rank = 0; rank < group_.size(); ++rank) {
    CommunicatorOptions options;
    options.deadline = std::numeric_limits<double>::infinity();  // a thread that fails says so, and one that waits for rows may wait long
    if (rank == 0) options.is_cancelled = [&cancelled = parts_.cancelled] { return cancelled.is_set(); };
    group_[rank].emplace(std::move(ends[rank]), std::move(options));
  }
}

// --- a step

void RankTeam::begin(double lr, int64_t number, int64_t attempts, int64_t rows, double loss_scale) {
  follow();
  for (const auto& member : members_) member->step->begin(lr, number, attempts, rows, loss_scale);
}

void RankTeam::follow() {
  const int64_t changes = parts_.model.gate().changes();
  if (std::exchange(weights_at_, changes) != changes) {
    const WeightsGate::Reader whole_step(parts_.model.gate());
    for (const auto& member : members_) {
      const WeightsGate::Writer writer(member->model->gate());
      parts_.model.copy_parameters(member->storage);
    }
  }
  if (std::exchange(has_state_, true)) return;
  const int64_t bytes = members_.empty() ? 0 : members_[0]->step->executor().plan().memory.of(Arena::optimizer);
  for (const auto& member : members_)
    if (bytes > 0) copy(parts_.storage.backend(), member->storage.data(Arena::optimizer), parts_.storage.data(Arena::optimizer), bytes);
}

void RankTeam::run(std::optional<std::span<const HostView>> batch, const std::function<void()>& own_part) {
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
  } catch (...) {
    own = std::current_exception();
    end_group(0, own);
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return working_ == 0; });
  if (own || std::ranges::any_of(members_, [](const auto& member) { return member->error != nullptr; })) rethrow_first(own);
  weights_at_ = parts_.model.gate().changes();
}

void RankTeam::live(Member& member) {
  for (int64_t done = 0;; ++done) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ends_ || steps_ > done; });
    if (ends_) return;
    lock.unlock();
    try {
      work(member);
    } catch (...) {
      member.error = std::current_exception();
      end_group(member.rank, member.error);
    }
    lock.lock();
    --working_;
    changed_.notify_all();
  }
}

void RankTeam::work(Member& member) {
  const auto bind = [&](int64_t first_row, int64_t rows, Executor& executor) {
    if (batch_) {
      member.inputs.bind(*batch_, first_row, rows, executor);
      return true;
    }
    const Patience patience{Executor::kNoDeadline, [this] { return parts_.cancelled.is_set(); }};
    const auto batch = member.feed->next(patience);
    if (!batch) fail(Code::rank_failed, "step: cancelled");
    member.inputs.check(*batch, rows);
    member.inputs.bind(*batch, 0, rows, executor);
    return true;
  };
  member.step->go_on(Executor::kNoDeadline, std::ref(bind));
}

/// So that nobody waits for a rank that has failed.
void RankTeam::end_group(int rank, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& why) {
    group_[static_cast<size_t>(rank)]->abort(why.what());
    const auto* const known = dynamic_cast<const Error*>(&why);
    if (rank == 0 && known != nullptr && known->code() == Code::cancelled) static_cast<void>(parts_.cancelled.take());
  }
}

void RankTeam::rethrow_first(const std::exception_ptr& own) {
  connect();
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

int64_t RankTeam::memory_bytes() const {
  int64_t sum = 0;
  for (const auto& member : members_)
    sum += member->storage.bytes() + member->step->own_bytes() + (member->feed ? member->feed->buffer_bytes() : 0);
  return sum;
}

}  // namespace st
