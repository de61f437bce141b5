// A trainer's steps whose loss the host computes, each from its first forward to its apply.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "train/host_loss.h"
#include "train/planned_step.h"

namespace st {

class HostLossStep {
 public:
  struct Parts {  // of the trainer; all borrowed
    Model& model;
    const Recipe& recipe;
    Storage& storage;
    Workers& workers;
    CancelToken& cancelled;
    const std::vector<bool>& inputs;  // that the graph reads, by slot
    const PlannedStep* beside;        // its step on the graph's own loss; null: the graph has none
    Communicator* ranks;              // the host's group, of which it is a rank; null: it is alone
  };
  /// Without a loss in the graph its one plan is made here, else when one is first needed. Throws as HostLoss.
  HostLossStep(const Parts& parts, const PlanOptions& options);

  bool is_open() const { return open_ != nullptr; }
  double lr() const { return lr_; }
  /// `batch` is that of the first forward: with the graph's own loss where it has all inputs of that, so that a host that computes its own
  /// need not make up targets.
  void begin(std::span<const HostView> batch, double lr, double loss_scale);
  void forget() {
    open_ = nullptr;
    is_updating_ = false;
  }

  // Of the one that is open, as HostLoss; they hold the model's gate. Throw wrong_state where there is none. In a group all ranks call
  // backward alike where the recipe's reduce is micro, and apply.
  std::span<const HostView> forward(std::span<const HostView> batch, int64_t attempts);
  void backward(std::span<const HostView> gradients);
  void backward_own_loss();
  /// Ends it by its update; the loss is NaN unless the graph's own was used. `before_update` is called when the ranks have met, if given.
  struct Done {
    const HostLoss* loss = nullptr;
    double lr = 0, seconds = 0, mean_loss = 0;
    int64_t tokens = 0;  // of all ranks
  };
  Done apply(int64_t number, const std::function<void(const Executor&)>& before_update);

  /// Whether its update began, and neither ended nor was forgotten.
  bool is_updating() const { return is_updating_; }

  /// Of the graph without a loss.
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
  double lr_ = 0;     // of the open one: what is set meanwhile is for the next
  double begun_ = 0;  // when (os::seconds())
  bool is_updating_ = false;
};

}  // namespace st
