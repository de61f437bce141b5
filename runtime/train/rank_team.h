// The other data ranks of a trainer: threads of this process, each with the model's parameters of its own.
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

namespace st {

/// Rank 0 is the trainer itself, on the thread of its caller; here are ranks 1 and on, and what connects them all. A step is whole on all
/// ranks or on none.
class RankTeam {
 public:
  struct Parts {  // of the trainer; the references outlive the team
    Model& model;
    const Recipe& recipe;
    const Storage& storage;
    std::function<bool()> is_cancelled;   // rank 0 is asked, and ends the group; the update is not cancelled
    std::shared_ptr<const Dataset> data;  // may be null
    int threads;                          // of each rank
  };
  /// Plans and allocates the ranks' steps; the threads wait. Throws as PlannedStep does.
  RankTeam(const Parts& parts, const PlanOptions& options);
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  /// Rank 0's end of the group: the same object for the team's life.
  Communicator& own() { return group_[0]; }

  /// As PlannedStep::begin. Before, the ranks get what the host has changed of the weights since the last step, and, after forget_state(),
  /// the optimizer's state.
  void begin(double lr, int64_t number, int64_t attempts, int64_t rows, double loss_scale);
  void forget_state() { has_state_ = false; }

  /// A step to its end on all ranks: `own_part` on the caller's thread, the others' beside it on these rows (none: the data's next).
  /// Throws the first rank's error that is not another's consequence, with its rank; nothing has been updated then.
  void run(std::optional<std::span<const HostView>> batch, const std::function<void()>& own_part);
  /// The data's rows from here on.
  void rewind(int64_t cursor);

  int64_t memory_bytes() const;
  void trim();  // between steps

 private:
  struct Member {
    Member(int32_t rank, const Model& of, int threads);

    int32_t rank;
    std::shared_ptr<Model> model;
    Storage storage;
    std::unique_ptr<Workers> workers;
    CancelToken cancelled;  // never set
    std::unique_ptr<PlannedStep> step;
    BatchBinding inputs;
    std::unique_ptr<Feed> feed;  // none: no data, or too few micro-batches
    std::exception_ptr error;
    std::thread thread;
  };

  void connect();
  void start();
  void stop();
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

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex.
  int64_t steps_ = 0;   // that the members were told to do
  size_t working_ = 0;  // members that are at one
  bool ends_ = false;
  std::optional<std::span<const HostView>> batch_;  // of the step
};

}  // namespace st
