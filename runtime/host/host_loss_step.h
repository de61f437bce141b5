// A trainer's steps whose loss the host computes, each from its first forward to apply.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "host/host_loss.h"
#include "team/planned_step.h"

namespace st {

class HostLossStep {
 public:
  struct Parts {  // of the trainer; all borrowed
    Model& model;
    const Recipe& recipe;
    Storage& storage;
    Workers& workers;
    CancelToken& cancelled;
    const std::vector<bool>& inputs;            // by slot: whether the graph reads it
    const PlannedStep* beside;                  // the trainer's step on the graph's own loss; null: the graph has no loss
    Communicator* ranks;                        // the data ranks of the host's group, of which the trainer is one; null: one rank
    std::optional<HostLoss::OtherAxes> others;  // of the group; empty: data ranks alone
  };
  /// Makes the plan here if the graph has no loss, else on first use. Throws like HostLoss.
  HostLossStep(const Parts& parts, const PlanOptions& options);

  bool is_open() const { return open_ != nullptr; }
  double lr() const { return lr_; }
  /// `batch` is that of the first forward. The plan includes the graph's own loss only if the batch has all inputs of that loss, so that a
  /// host that computes its own loss need not invent targets.
  void begin(std::span<const HostView> batch, double lr, double loss_scale);
  void forget() {
    open_ = nullptr;
    is_updating_ = false;
  }

  // As in HostLoss, on the open step; they hold the model's gate. Throw wrong_state if no step is open. In a group apply is a collective
  // call, and so is backward with reduce micro.
  std::span<const HostView> forward(std::span<const HostView> batch, int64_t attempts);
  void forward_into(std::span<const HostView> batch, int64_t attempts, std::span<const HostView> outputs);
  void backward(std::span<const HostView> gradients);
  void backward_own_loss();
  /// Ends the step with its update. The loss is NaN unless the graph's own was used. `before_update`, if given, is called after the ranks
  /// have agreed on the step.
  struct Done {
    const HostLoss* loss = nullptr;
    double lr = 0, seconds = 0, mean_loss = 0;
    int64_t tokens = 0;  // of all ranks
  };
  Done apply(int64_t number, const std::function<void(const Executor&)>& before_update);

  /// Whether an update has begun and has neither ended nor been forgotten.
  bool is_updating() const { return is_updating_; }

  /// Executes the graph without its loss.
  const Executor& executor() const { return losses_[0]->executor(); }
  int64_t own_bytes() const;

 private:
  HostLoss& loss_for(std::span<const HostView> batch);
  HostLoss& make(bool own_loss);
  HostLoss& open();

  Parts parts_;
  PlanOptions options_;
  std::array<std::unique_ptr<HostLoss>, 2> losses_;  // without the graph's own loss, with it
  HostLoss* open_ = nullptr;
  double lr_ = 0;     // of the open step; a rate set meanwhile applies to the next one
  double begun_ = 0;  // os::seconds()
  bool is_updating_ = false;
};

}  // namespace st
