// The other ranks of a trainer: threads of this process, each with the parameters of its plan, or the ranks of a group that the host
// has made, each with a trainer like this one.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "parts/rank_report.h"
#include "train/batch_binding.h"
#include "train/feed.h"
#include "train/model.h"
#include "train/pipeline_times.h"
#include "train/planned_step.h"
#include "train/rank_groups.h"
#include "train/timeline.h"

namespace st {

///   threads        the trainer is rank 0, on its caller's thread; the team has ranks 1 and up. A step is completed on all ranks or on none
///   host's group   the trainer is the rank that the host assigned; the team runs the collectives outside a step. A step that fails on one
///   rank is not completed by the others, except those that had received everything from
///                  all ranks already
class RankTeam {
 public:
  struct Parts {  // of the trainer; the references outlive the team
    Model& model;
    const Recipe& recipe;
    const Storage& storage;
    std::function<bool()> is_cancelled;   // called on rank 0, which ends the group; never cancels an update
    std::shared_ptr<const Dataset> data;  // may be null
    int threads;                          // per rank
    Communicator* group = nullptr;        // the host's, must outlive the team; null: ranks are threads
  };
  /// Plans and allocates the ranks' steps; the threads wait. Throws like PlannedStep.
  RankTeam(const Parts& parts, const PlanOptions& options);
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  RankGroups& groups() { return groups_; }
  const RankGroups& groups() const { return groups_; }
  /// With tensor ranks that are threads: the trainer's own executor, which has pieces of the parameters like those of the others. Fills
  /// them.
  void keep_pieces_in(const Executor& own);

  /// In a host's group, whose ranks each get their own rows: this rank's rows in a full step, and, as a collective call, the rows given to
  /// all ranks together (step_rows.h).
  int64_t own_rows() const;
  int64_t rows_of_all(RankReport own);
  /// Whether any rank reported lacks_copies in rows_of_all().
  bool any_lacks_copies() const;
  /// Maps a step's row `first_row` to the row among those given to this rank.
  int64_t own_row(int64_t first_row) const { return first_row / groups_.mesh().data / parts_.recipe.batch * parts_.recipe.batch; }

  /// Like PlannedStep::begin, at item `items` of the data. First copies to the ranks the weights that the host has changed since the last
  /// step and, after forget_state(), the optimizer's state.
  void begin(double lr, int64_t number, int64_t attempts, int64_t items, int64_t rows, double loss_scale);
  void forget_state() { has_state_ = has_met_ = false; }
  /// Whether this step begins with require_replicas(), on all ranks.
  bool compares_weights() const { return compares_weights_; }

  /// Runs a step to its end on all ranks: `own_part` on the caller's thread and the other ranks concurrently on `batch` (empty: the data's
  /// next rows). Nothing has been updated after an error.
  ///   threads        throws the first rank's error that is not a consequence of another, with its rank
  ///   host's group   throws this rank's error; the caller must end the group, or the others wait, except for rank_mismatch, which
  ///                  all ranks throw
  void run(std::optional<std::span<const HostView>> batch, const std::function<void()>& own_part);
  /// Whether a thread updated a parameter in the last step.
  bool has_updated() const;
  /// Starts timing the trainer's own step here instead of in begin().
  void start_clock() { start_clock(0); }
  /// Time spent in the last step. `exposed` and `exchanges` are those of the trainer's own step. In a host's group the ranks learn the
  /// others' times when the next step begins.
  struct Times {
    double exchange;   // seconds that the trainer's rank spent in collectives
    double hidden;     // the share of them that overlapped its computing
    double straggler;  // of this step; in a host's group, of the previous step; NaN: not known
  };
  Times take_times(double exposed, const ExchangeQueue* exchanges);
  const Timeline& timeline() const { return timeline_; }
  /// The last step's: of all ranks, once those of a host's group have shared it, else of this process's.
  PipelineTimes pipeline_times() const;
  /// Between steps; in a host's group with several stages a collective call of all ranks.
  void share_pipeline_times();
  std::string timeline_json() const;  // of st_trainer_timeline
  /// Continues at item `cursor` of the data.
  void rewind(int64_t cursor);

  /// PlannedStep::scopes_for_all() of the threads planned so far.
  std::optional<std::vector<RegionId>> scopes_for_all() const;
  /// Appends the executors of ranks 1 and up, if ranks are threads.
  void append_executors(std::vector<const Executor*>& to) const;
  /// Executor::watch of ranks 1 and up, if ranks are threads. Between steps.
  void watch(const std::function<Executor::Watch(size_t rank)>& of_rank);
  int64_t memory_bytes() const;
  std::vector<int64_t> sent_bytes() const;  // total so far, by rank of this process
  void trim();                              // between steps

 private:
  struct Member {
    Member(int32_t rank, const Model& of, int threads);

    int32_t rank;  // of all
    std::shared_ptr<Model> model;
    Storage storage;
    std::unique_ptr<Workers> workers;
    CancelToken never;
    std::unique_ptr<PlannedStep> step;
    BatchBinding inputs;
    std::unique_ptr<Feed> feed;  // null: no data, too few micro-batches, or a stage that reads no input
    std::exception_ptr error;
    std::thread thread;
  };

  void start();
  void stop();
  void start_clock(size_t rank);
  RankTimes times_of(size_t here) const;
  void thread_main(Member& member);
  PipelineTimes own_pipeline_times() const;
  void run_step(Member& member);
  void sync_weights();
  void end_group(size_t here, const std::exception_ptr& error) noexcept;
  [[noreturn]] void rethrow_first(const std::exception_ptr& own);

  Parts parts_;
  RankGroups groups_;
  std::vector<std::unique_ptr<Member>> members_;
  const Executor* own_ = nullptr;  // with tensor ranks: the trainer's
  int64_t weights_at_ = -1;        // the gate's changes() when the ranks had the same weights
  bool has_state_ = true;
  bool has_met_ = false;  // in a host's group: the ranks have compared their weights
  bool compares_weights_ = false;
  int64_t items_ = 0;                // items taken before this step
  std::vector<RankReport> reports_;  // in a host's group, by rank
  struct Clock {
    double exchanged = 0;         // seconds, before this step
    double began = 0, ended = 0;  // os::seconds()
  };
  std::vector<Clock> clocks_;  // by rank of this process
  Timeline timeline_;
  PipelineTimes shared_times_;                // in a host's group
  int64_t step_ = 0, timed_step_ = 0;         // the last step begun and the last step timed
  double exposed_ = 0;                        // the trainer's own, in timed_step_
  RankTimes own_times_;                       // in timed_step_
  const ExchangeQueue* exchanges_ = nullptr;  // the trainer's own, in timed_step_

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex.
  int64_t steps_ = 0;   // steps given to the members so far
  size_t working_ = 0;  // members that still run a step
  bool ends_ = false;
  std::optional<std::span<const HostView>> batch_;  // of the step
};

}  // namespace st
