#include "checkpoint/checkpoint_manager.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error_of.h"
#include "base/json.h"
#include "base/os/files.h"
#include "base/os/machine.h"
#include "checkpoint/utc_time.h"

namespace st {
namespace {

constexpr std::chrono::milliseconds kLookAtCancel{20};
constexpr int64_t kWindowPiece = int64_t{1} << 20;  // bytes per task when workers fill a window together

Json object_of(const std::string& json, const char* what) {
  Json object = parse_json(json, what);
  check(object.is(Json::Kind::object), what, ": must be a JSON object, got ", json);
  return object;
}

Manifest manifest_of(const CheckpointContent& content) {
  Manifest manifest;
  manifest.step = content.step;
  manifest.time = utc_time();
  manifest.host = os::host_name();
  manifest.training = object_of(content.training, "checkpoint: training state");
  manifest.recipe = object_of(content.recipe, "checkpoint: recipe");
  manifest.metadata = content.metadata;
  return manifest;
}

/// If ranks save together, a failure on one is thrown on all.
template <class Call>
void agreeing(const CheckpointContent& content, const Call& call) {
  content.shared ? content.shared->agree_on(call) : call();
}

}  // namespace

/// Saves are numbered as they begin and written in that order: the next to be written is number `ended`.
struct CheckpointManager::State {
  State(std::string folder, ManagerOptions wishes, std::shared_ptr<MemorySource> source, Logger logger, Place place)
      : options(std::move(wishes)),
        memory(std::move(source)),
        log(logger),
        destination(std::move(folder), {options.retention, options.best, options.write}, logger, place) {
    free.reserve(static_cast<size_t>(options.queue + 1));
  }

  const ManagerOptions options;
  const std::shared_ptr<MemorySource> memory;
  const Logger log;
  SaveDestination destination;

  std::mutex callers;        // held from a save's first copy to its last
  mutable std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  int64_t begun = 0, ended = 0;
  bool writing = false, write_failed = false;
  std::vector<std::unique_ptr<Snapshot>> free;
  int64_t snapshots = 0;  // free and in use
  std::vector<std::shared_ptr<Pending>> pending;
  std::optional<Error> error;
  SaveProgress numbers;
  int64_t saved_step = -1;

  void wait_for_others(const std::function<bool()>& is_cancelled);
  template <class Condition>
  void await(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_cancelled, const Condition& is_so) {
    while (!changed.wait_for(lock, kLookAtCancel, is_so))
      require(!is_cancelled || !is_cancelled(), Code::cancelled, "checkpoint: the save was cancelled while waiting for an earlier one");
  }
  void keep_error(const std::exception_ptr& exception);
  void reap();
  void let_ended_be_done(std::unique_lock<std::mutex>& lock) const;
  void write(Manifest manifest, const std::vector<WrittenTensor>& tensors, SharedSaveEnd* together,
             const std::function<bool()>& is_cancelled);
  void follow(const std::string& name, const Manifest& manifest);
};

/// While it lives no other save writes into the folder. Its destructor is the last use of the manager by its thread.
class CheckpointManager::FolderHold {
 public:
  FolderHold(State& state, int64_t number) : state_(state) {
    std::unique_lock lock(state_.mutex);
    state_.changed.wait(lock, [&] { return state_.ended == number; });
    state_.writing = true;
  }
  ~FolderHold() {
    const std::lock_guard lock(state_.mutex);
    state_.writing = false;
    state_.numbers.failed += std::exchange(state_.write_failed, false) ? 1 : 0;
    ++state_.ended;
    state_.changed.notify_all();
  }
  FolderHold(const FolderHold&) = delete;
  FolderHold& operator=(const FolderHold&) = delete;

 private:
  State& state_;
};

/// Borrows a snapshot for its lifetime.
class CheckpointManager::SnapshotLoan {
 public:
  /// Waits for a snapshot and a place in the queue.
  SnapshotLoan(State& state, const std::function<bool()>& is_cancelled) : state_(state) {
    std::unique_lock lock(state_.mutex);
    state_.await(lock, is_cancelled, [&] {
      return state_.begun - state_.ended <= state_.options.queue && (!state_.free.empty() || state_.snapshots <= state_.options.queue);
    });
    if (state_.free.empty()) {
      snapshot_ = std::make_unique<Snapshot>(state_.memory, state_.options.require_memory);
      ++state_.snapshots;
    } else {
      snapshot_ = std::move(state_.free.back());
      state_.free.pop_back();
    }
  }
  ~SnapshotLoan() {
    const std::lock_guard lock(state_.mutex);
    state_.free.push_back(std::move(snapshot_));  // reserved for all
    state_.changed.notify_all();
  }
  SnapshotLoan(const SnapshotLoan&) = delete;
  SnapshotLoan& operator=(const SnapshotLoan&) = delete;

  Snapshot& snapshot() { return *snapshot_; }

 private:
  State& state_;
  std::unique_ptr<Snapshot> snapshot_;
};

struct CheckpointManager::Job {
  Manifest manifest;
  std::vector<WrittenTensor> tensors;
  std::unique_ptr<SnapshotLoan> snapshot_loan;
  std::unique_ptr<SharedSaveEnd> together;  // null: this rank saves alone
};

/// Called with `callers` held, so that no other save begins.
void CheckpointManager::State::wait_for_others(const std::function<bool()>& is_cancelled) {
  std::unique_lock lock(mutex);
  await(lock, is_cancelled, [&] { return ended == begun; });
}

void CheckpointManager::State::keep_error(const std::exception_ptr& exception) {
  if (!error) error = error_of(exception, "checkpoint: ");
}

/// Drops the saves that are done, and keeps the error of those whose Pending nobody holds any more.
void CheckpointManager::State::reap() {
  const std::lock_guard lock(mutex);
  std::erase_if(pending, [&](const std::shared_ptr<Pending>& save) {
    if (!save->is_done()) return false;
    const std::exception_ptr untold = save->unreported_error();
    if (untold && save.use_count() > 1) return false;
    if (untold) keep_error(untold);
    return true;
  });
}

/// A Pending is done a moment after its turn has ended, and take_error() needs it done. Waits for that moment, so that a caller that sees a
/// save as ended can also see its error.
void CheckpointManager::State::let_ended_be_done(std::unique_lock<std::mutex>& lock) const {
  const auto is_under_way = [](const std::shared_ptr<Pending>& save) { return !save->is_done(); };
  while (std::ranges::count_if(pending, is_under_way) > begun - ended) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

/// Performs one save; called in its turn.
void CheckpointManager::State::write(Manifest manifest, const std::vector<WrittenTensor>& tensors, SharedSaveEnd* together,
                                     const std::function<bool()>& is_cancelled) {
  const double start = os::seconds();
  try {
    const std::string name = destination.write(manifest, tensors, together, is_cancelled);
    {
      const std::lock_guard lock(mutex);
      ++numbers.saved;
      numbers.write_seconds = os::seconds() - start;
      saved_step = manifest.step;
    }
    if (!name.empty()) follow(name, manifest);
  } catch (const std::exception& why) {
    log.warning("checkpoint", "step ", manifest.step, " was not saved: ", why.what());
    const std::lock_guard lock(mutex);
    write_failed = true;  // counted when the turn ends
    throw;
  }
}

/// The work after a commit. The save has succeeded, whatever fails here.
void CheckpointManager::State::follow(const std::string& name, const Manifest& manifest) {
  try {
    destination.follow(name, manifest);
  } catch (const std::exception& why) {
    const std::lock_guard lock(mutex);
    keep_error(std::current_exception());
    log.warning("checkpoint", name, " is saved, but updating `latest` or removing older checkpoints failed: ", why.what());
  }
}

CheckpointManager::CheckpointManager(std::string folder, ManagerOptions options, std::shared_ptr<MemorySource> memory, Logger log,
                                     Place place) {
  check(options.queue >= 0, "checkpoint: queue must be 0 or more, got ", options.queue);
  state_ = std::make_unique<State>(std::move(folder), std::move(options), std::move(memory), log, place);
}

CheckpointManager::~CheckpointManager() {
  state_->destination.written().is_urgent = true;
  wait(-1);
}

const RunFolder& CheckpointManager::folder() const { return state_->destination.folder(); }

std::shared_ptr<Pending> CheckpointManager::save(const CheckpointContent& content, Workers& workers,
                                                 const std::function<bool()>& is_cancelled) {
  State& state = *state_;
  const double start = os::seconds();
  const std::lock_guard callers(state.callers);
  std::shared_ptr<Job> job;
  const auto copy = [&] {
    state.reap();
    job = std::make_shared<Job>();
    job->manifest = manifest_of(content);
    job->together = state.destination.join(content.shared);
    job->snapshot_loan = std::make_unique<SnapshotLoan>(state, is_cancelled);
    Snapshot& snapshot = job->snapshot_loan->snapshot();
    snapshot.take(content.tensors, workers);
    for (size_t i = 0; i < content.tensors.size(); ++i) {
      const SnapshotTensor& tensor = content.tensors[i];
      job->tensors.push_back({tensor.name, tensor.kind, tensor.dtype, tensor.shape, snapshot.bytes_of(i), {}});
    }
    const std::lock_guard lock(state.mutex);
    state.pending.reserve(state.pending.size() + 1);
  };
  agreeing(content, copy);
  if (job->together) job->together->begin();

  const std::lock_guard lock(state.mutex);
  auto pending = std::make_shared<Pending>([&state, job, number = state.begun] {
    os::give_way_to_other_threads();  // or a training step's threads would wait for the core that the save takes
    const FolderHold folder_hold(state, number);
    struct EndLoan {  // destroyed before the turn ends
      Job& job;
      ~EndLoan() {
        job.snapshot_loan.reset();
        job.together.reset();
      }
    } const end_lease{*job};
    state.write(std::move(job->manifest), job->tensors, job->together.get(), {});
  });
  ++state.begun;
  state.pending.push_back(pending);
  state.numbers.blocked_seconds = os::seconds() - start;
  return pending;
}

void CheckpointManager::save_now(const CheckpointContent& content, Workers& workers, const std::function<bool()>& is_cancelled) {
  State& state = *state_;
  const double start = os::seconds();
  const std::lock_guard callers(state.callers);
  Manifest manifest;
  std::vector<WrittenTensor> tensors;
  std::unique_ptr<SharedSaveEnd> together;
  agreeing(content, [&] {
    state.reap();
    manifest = manifest_of(content);
    for (const SnapshotTensor& tensor : content.tensors) {
      const auto copy = [&tensor, &workers](int64_t first, std::span<std::byte> window) {
        workers.run_range(std::ssize(window), kWindowPiece, [&](int64_t begin, int64_t end) {
          tensor.copy_to(first + begin, window.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
        });
      };
      tensors.push_back({tensor.name, tensor.kind, tensor.dtype, tensor.shape, tensor.bytes, copy});
    }
    together = state.destination.join(content.shared);
    state.wait_for_others(is_cancelled);
  });
  if (together) together->begin();
  int64_t number = 0;
  {
    const std::lock_guard lock(state.mutex);
    number = state.begun++;
  }
  const FolderHold folder_hold(state, number);
  state.write(std::move(manifest), tensors, together.get(), is_cancelled);
  together.reset();
  const std::lock_guard lock(state.mutex);
  state.numbers.blocked_seconds = os::seconds() - start;
}

void CheckpointManager::prepare(const CheckpointContent& content, Workers& workers) {
  State& state = *state_;
  const std::lock_guard callers(state.callers);
  std::vector<std::unique_ptr<SnapshotLoan>> all;
  for (int64_t i = 0; i <= state.options.queue; ++i) {
    all.push_back(std::make_unique<SnapshotLoan>(state, nullptr));
    all.back()->snapshot().make_room(content.tensors, workers);
  }
}

void CheckpointManager::trim() {
  State& state = *state_;
  for (;;) {
    std::unique_ptr<Snapshot> unused;  // freed after the lock is released, because the host may own the memory
    const std::lock_guard lock(state.mutex);
    if (state.free.empty()) return;
    unused = std::move(state.free.back());
    state.free.pop_back();
    --state.snapshots;
  }
}

std::optional<Error> CheckpointManager::take_error() {
  state_->reap();
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->error, std::nullopt);
}

bool CheckpointManager::wait(int64_t milliseconds) {
  constexpr int64_t kMost = int64_t{1} << 40;  // longer waits would overflow the clock
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto idle = [&] { return state.ended == state.begun; };
  if (milliseconds < 0)
    state.changed.wait(lock, idle);
  else if (!state.changed.wait_for(lock, std::chrono::milliseconds(std::min(milliseconds, kMost)), idle))
    return false;
  state.let_ended_be_done(lock);
  return true;
}

SaveProgress CheckpointManager::progress() const {
  std::unique_lock lock(state_->mutex);
  state_->let_ended_be_done(lock);
  SaveProgress now = state_->numbers;
  now.waiting = std::max<int64_t>(state_->begun - state_->ended - 1, 0);
  if (state_->writing) {
    const WriteProgress& written = state_->destination.written();
    now.bytes_all = written.all;
    now.bytes_done = std::min<int64_t>(written.done, now.bytes_all);
  }
  return now;
}

int64_t CheckpointManager::saved_step() const {
  const std::lock_guard lock(state_->mutex);
  return state_->saved_step;
}

void CheckpointManager::adopt_earlier() { state_->destination.adopt_earlier(); }

void CheckpointManager::mark_corrupt(const std::string& name) { state_->destination.mark_corrupt(name); }

}  // namespace st
