// The other data ranks of a trainer, each with the parameters that its plan says: threads of this process, or whoever is in a group that
// the host has made, each with a trainer like this one.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "data/dataset.h"
#include "train/batch_binding.h"
#include "train/feed.h"
#include "train/model.h"
#include "train/planned_step.h"
#include "train/rank_agreement.h"
#include "train/timeline.h"

namespace st {

/// Of threads, the trainer itself is rank 0, on the thread of its caller; here are ranks 1 and on, and what connects them all. A step is
/// whole on all ranks or on none. Of a host's group the trainer is the rank that the host says, and here is what they do together beside a
/// step: a step that has failed on one is not made by the others, but for those that had their part of all others already.
class RankTeam {
 public:
  struct Parts {  // of the trainer; the references outlive the team
    Model& model;
    const Recipe& recipe;
    const Storage& storage;
    std::function<bool()> is_cancelled;   // rank 0 is asked, and ends the group; the update is not cancelled
    std::shared_ptr<const Dataset> data;  // may be null
    int threads;                          // of each rank
    Communicator* group = nullptr;        // the host's, which outlives the team; null: threads
  };
  /// Plans and allocates the ranks' steps; the threads wait. Throws as PlannedStep does.
  RankTeam(const Parts& parts, const PlanOptions& options);
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  /// The trainer's end of the group: the same object for the team's life.
  Communicator& own() { return end_of(0); }
  bool is_of_threads() const { return parts_.group == nullptr; }

  /// Of a host's group, whose ranks are each given rows of their own: how many these are in a full step, and, all ranks calling, how many
  /// all were given together (rank_agreement.h).
  int64_t own_rows() const;
  int64_t rows_of_all(StepStart own);
  /// Whether a rank has told so then.
  bool any_lacks_copies() const;
  /// The first of the rows given to this rank that a step's row `first_row` is.
  int64_t own_row(int64_t first_row) const { return first_row / parts_.recipe.ranks / parts_.recipe.batch * parts_.recipe.batch; }

  /// As PlannedStep::begin, at item `items` of the data. Before, the ranks get what the host has changed of the weights since the last
  /// step, and, after forget_state(), the optimizer's state.
  void begin(double lr, int64_t number, int64_t attempts, int64_t items, int64_t rows, double loss_scale);
  void forget_state() { has_state_ = has_met_ = false; }
  /// Whether this step begins with require_replicas(), on all ranks.
  bool compares_weights() const { return compares_weights_; }

  /// A step to its end on all ranks: `own_part` on the caller's thread, the others' beside it on these rows (none: the data's next).
  /// Throws the first rank's error that is not another's consequence, with its rank; nothing has been updated then. Of a host's group it
  /// throws this rank's: whoever catches it ends the group, or the others wait, but for what all have found together (rank_mismatch).
  void run(std::optional<std::span<const HostView>> batch, const std::function<void()>& own_part);
  /// Whether a thread has updated a parameter in the step that ended last.
  bool has_updated() const;
  /// The trainer's own step begins to count here, not in begin().
  void start_clock() { start_clock(0); }
  /// Where the time of the step that is done went; `exposed`, which `exchanges` knows: of the trainer's own. In a host's group all know
  /// what the others' took when the next begins.
  struct Times {
    double exchange;   // seconds of the trainer's rank in exchange
    double hidden;     // the share of them in which it computed beside
    double straggler;  // of the step; in a host's group of the one before; NaN: not known
  };
  Times take_times(double exposed, const ExchangeQueue* exchanges);
  const Timeline& timeline() const { return timeline_; }
  std::string timeline_json() const;  // of st_trainer_timeline
  /// The data's rows from here on.
  void rewind(int64_t cursor);

  /// PlannedStep::scopes_for_all() of the threads that are planned.
  std::optional<std::vector<RegionId>> scopes_for_all() const;
  /// Of the threads, those of ranks 1 and on.
  void append_executors(std::vector<const Executor*>& to) const;
  int64_t memory_bytes() const;
  std::vector<int64_t> sent_bytes() const;  // of each rank here, so far
  void trim();                              // between steps

 private:
  struct Member {
    Member(int32_t rank, const Model& of, int threads);

    int32_t rank;
    std::shared_ptr<Model> model;
    Storage storage;
    std::unique_ptr<Workers> workers;
    CancelToken never;
    std::unique_ptr<PlannedStep> step;
    BatchBinding inputs;
    std::unique_ptr<Feed> feed;  // none: no data, or too few micro-batches
    std::exception_ptr error;
    std::thread thread;
  };

  const Communicator& end_of(int rank) const { return parts_.group != nullptr ? *parts_.group : group_[static_cast<size_t>(rank)]; }
  Communicator& end_of(int rank) { return parts_.group != nullptr ? *parts_.group : group_[static_cast<size_t>(rank)]; }
  void connect();
  void start();
  void stop();
  void start_clock(size_t rank);
  RankTimes times_of(size_t here) const;
  void live(Member& member);
  void work(Member& member);
  void follow();
  void end_group(int rank, const std::exception_ptr& error) noexcept;
  [[noreturn]] void rethrow_first(const std::exception_ptr& own);

  Parts parts_;
  std::vector<Communicator> group_;  // by rank; others take their places after an error
  bool is_connected_ = false;
  std::vector<std::unique_ptr<Member>> members_;
  int64_t weights_at_ = -1;  // the gate's changes() when the ranks had the same weights
  bool has_state_ = true;
  bool has_met_ = false;  // in a host's group: all have compared their weights
  bool compares_weights_ = false;
  int64_t items_ = 0;              // taken before this step
  std::vector<StepStart> starts_;  // in a host's group, by rank
  struct Clock {
    double exchanged = 0;         // seconds, before this step
    double began = 0, ended = 0;  // os::seconds()
  };
  std::vector<Clock> clocks_;  // by rank; of those whose ends are here
  Timeline timeline_;
  int64_t step_ = 0, timed_step_ = 0;         // the one begun last, and the last that was timed
  double exposed_ = 0;                        // of the trainer's own part in it
  RankTimes own_times_;                       // of timed_step_
  const ExchangeQueue* exchanges_ = nullptr;  // that the trainer's own part of it used

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex.
  int64_t steps_ = 0;   // that the members were told to do
  size_t working_ = 0;  // members that are at one
  bool ends_ = false;
  std::optional<std::span<const HostView>> batch_;  // of the step
};

}  // namespace st
