// The trainer: a model, a recipe, and one optimizer step at a time.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "optim/lr_schedule.h"
#include "train/feed.h"
#include "train/metrics.h"
#include "train/model.h"
#include "train/named_view.h"
#include "train/recipe.h"

namespace st {

struct Evaluation {
  double loss = 0;  // mean over the counted rows
  double count = 0;
};

class Trainer {
 public:
  /// Plans the step and allocates all of it: a step allocates nothing. Throws invalid_argument (recipe and model do not fit), out_of_memory
  /// with need and supply before anything is touched.
  /// data null: each step is given its batch.
  Trainer(std::shared_ptr<Model> model, Recipe recipe, std::shared_ptr<const Dataset> data, const PlanOptions& options = {});

  /// One optimizer step on K x batch rows of each input, the micro-batches in order. Throws invalid_argument for views that do not fit the
  /// model's inputs (names both), not_finite for NaN in an input, cancelled; the state is then that of the last whole step.
  StepReport step(std::span<const NamedView> batch);

  /// The same on the data's next rows. Throws wrong_state without data.
  StepReport step();

  /// Adds up the loss over all rows of a dataset, with dropout off. Nothing changes.
  Evaluation evaluate(const Dataset& data);

  /// XXH3-128 over every parameter and optimizer value in name order: name, dtype, shape, bytes.
  std::string state_digest() const;

  /// Makes the running step, or the next, end with cancelled at its next instruction. From any thread or signal handler.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool take_cancel() { return cancelled_.exchange(false); }

  int64_t rows_per_step() const { return plan().micro_batches * recipe_.batch; }
  const Plan& plan() const { return train_->plan(); }
  const Executor& executor() const { return *train_; }
  const Recipe& recipe() const { return recipe_; }
  Model& model() const { return *model_; }
  int64_t steps() const { return attempts_; }
  /// Bytes of all arenas that this trainer and its model hold.
  int64_t memory_bytes() const;

 private:
  template <class T>
  T* control(const char* name) const;
  double report(const char* name) const;
  void open_feed();
  template <class Bind>
  StepReport run_step(const Bind& bind);
  void check_batch(std::span<const NamedView> batch, int64_t rows) const;
  /// Rows from `first_row` on become the executor's inputs. NaN among them is refused before anything is computed of it.
  void bind_rows(Executor& executor, std::span<const NamedView> batch, int64_t first_row, int64_t rows) const;
  Executor& inference(int64_t rows);
  const NamedView& view_of(std::span<const NamedView> batch, const Slot& input) const;

  std::shared_ptr<Model> model_;
  Recipe recipe_;
  std::unique_ptr<Workers> workers_;
  std::atomic<bool> cancelled_{false};
  LrSchedule schedule_;
  Storage storage_;  // the model's parameters; gradients and moments of this trainer
  std::unique_ptr<Executor> train_;
  std::shared_ptr<const Dataset> data_;
  std::unique_ptr<Feed> feed_;
  std::map<int64_t, std::unique_ptr<Executor>> inference_;  // by rows; plans are cached by shape
  int64_t tokens_per_step_ = 0;
  int64_t attempts_ = 0, updates_ = 0, tokens_ = 0;
  int64_t items_taken_ = 0;  // of the data's stream
};

}  // namespace st
