// The ranks of a trainer: one; or several, which are threads of this process, or processes of a group that the host has made, each with a
// trainer like this one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "parts/rank_report.h"
#include "team/rank_clocks.h"
#include "team/rank_groups.h"
#include "team/rank_step.h"

namespace st {

///   threads        the trainer's caller runs rank 0; a thread runs each other rank. A step is completed on all ranks or on none
///   host's group   the caller runs the rank that the host assigned. A step that fails on one rank is not completed by the others, except
///                  those that had received everything from all ranks already
class Ranks {
 public:
  struct Parts {
    const Recipe& recipe;                 // outlives the ranks
    std::function<bool()> is_cancelled;   // called on the caller's rank, which ends the group; never cancels an update
    std::shared_ptr<const Dataset> data;  // may be null
    int threads;                          // that each rank computes with
    Communicator* group = nullptr;        // the host's, must outlive the ranks; null: one rank, or ranks are threads
  };
  /// `own`: the rank that the caller runs, with the trainer's model. Plans and allocates the steps of all ranks of this process, if the
  /// graph has a loss; in a group, a collective call. Throws like PlannedStep.
  Ranks(std::unique_ptr<RankStep> own, const Parts& parts, const PlanOptions& options, bool has_loss);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  RankStep& own() { return *ranks_[0]; }
  const RankStep& own() const { return *ranks_[0]; }
  RankGroups& groups() { return groups_; }
  const RankGroups& groups() const { return groups_; }
  RankClocks& clocks() { return clocks_; }
  const RankClocks& clocks() const { return clocks_; }

  /// In a host's group, whose ranks each get their own rows: this rank's rows in a full step, and, as a collective call, the rows given to
  /// all ranks together (step_rows.h).
  int64_t own_rows() const;
  int64_t rows_of_all(RankReport own);

  /// Begins a step on the graph's own loss. First copies to the threads the weights that the host has changed since the last step and,
  /// after forget_state(), the optimizer's state.
  void begin(const StepStart& start);
  /// Runs the step until `deadline`, like PlannedStep::run_until; with several ranks to its end, on all ranks at once. Nothing has been
  /// updated after an error.
  ///   threads        throws the first rank's error that is not a consequence of another, with its rank
  ///   host's group   throws this rank's error; the caller must end the group, or the others wait, except for rank_mismatch, which
  ///                  all ranks throw
  bool run_until(double deadline, const RankStep::Rows& rows);
  /// Whether a rank of this process updated a parameter in the last step.
  bool has_updated() const;

  // A step whose loss the host computes, on the caller's rank.
  void begin_host_loss(int64_t attempts);
  /// Compares the weights of the data ranks before the update, if this step is due to.
  void compare_weights(const Executor& executor) { compare_weights(0, executor); }
  void end_host_loss(const RankClocks::Exchanges& exchanges);

  void forget_state() { has_state_ = has_met_ = false; }
  /// Continues at item `cursor` of the data.
  void rewind(int64_t cursor);

  /// By rank of this process, if they are planned.
  std::vector<const Executor*> executors() const;
  /// Executor::watch of each rank of this process. Between steps.
  void watch(const std::function<Executor::Watch(size_t rank)>& of_rank);
  int64_t memory_bytes() const;
  std::vector<int64_t> sent_bytes() const;  // total so far, by rank of this process; empty with one rank
  void trim();                              // between steps

 private:
  struct Thread {
    std::thread thread;
    std::exception_ptr error;  // of the step
  };

  void plan(PlanOptions options);
  void plan(size_t here, PlanOptions options);
  std::optional<std::vector<RegionId>> scopes_for_all() const;
  void start();
  void stop();
  void thread_main(size_t here);
  void begin_step(int64_t attempts);
  void run_rank(size_t here, const RankStep::Rows& rows);
  void run_threads(const RankStep::Rows& rows);
  void compare_weights(size_t here, const Executor& executor);
  void sync_weights();
  void sync_state();
  void end_group(size_t here, const std::exception_ptr& error) noexcept;
  [[noreturn]] void rethrow_first(const std::exception_ptr& own);

  const Parts parts_;
  RankGroups groups_;
  RankClocks clocks_;
  CancelToken never_;                             // of threads: the caller's rank is cancelled, and ends the group
  std::vector<std::unique_ptr<RankStep>> ranks_;  // of this process; the caller's first
  std::vector<Thread> threads_;                   // of ranks_[1] and up
  int64_t weights_at_ = -1;                       // the gate's changes() when the threads had the model's weights
  bool threads_have_copies_ = false;              // ranks that are threads have parameters, or shards, of their own besides the model's
  bool has_state_ = true;
  bool has_met_ = false;  // in a host's group: the ranks have compared their weights
  bool compares_weights_ = false;
  std::vector<RankReport> reports_;  // in a host's group, by rank

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex.
  int64_t steps_ = 0;   // steps given to the threads so far
  size_t working_ = 0;  // threads that still run a step
  bool ends_ = false;
  RankStep::Rows rows_;  // of the step
};

}  // namespace st
