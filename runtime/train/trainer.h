// The trainer: a model, a recipe, and one optimizer step at a time.
#pragma once

#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "optim/gradient_noise.h"
#include "optim/loss_scaler.h"
#include "optim/lr_schedule.h"
#include "train/batch_binding.h"
#include "train/evaluation.h"
#include "train/feed.h"
#include "train/host_loss_step.h"
#include "train/metrics.h"
#include "train/model.h"
#include "train/planned_step.h"
#include "train/rank_team.h"
#include "train/recipe.h"
#include "train/state_tensor.h"
#include "train/step_slots.h"
#include "train/training_state.h"
#include "train/weight_average.h"

namespace st {

class Trainer {
 public:
  /// Plans the step and allocates all of it: a step allocates nothing. Throws invalid_argument (recipe and model do not fit), out_of_memory
  /// with need and supply before anything is touched.
  /// data null: each step is given its batch. A model without a loss is trained by forward, backward and apply alone.
  /// ranks: of whom this trainer is one, each with a trainer of the same recipe, model and data; it outlives the trainer. All make the same
  /// calls of step() and advance(), on the data, which each sees whole, or on a batch of its own rows: of its micro-batches k = g * size +
  /// rank, in order. The recipe's ranks are their number, or 1 for that. Throws rank_mismatch, on all ranks the same, where they are not of
  /// one run. After other errors of it, or of a step, the others wait: whoever catches them ends the group. With zero 3 the model keeps
  /// this rank's pieces of the parameters alone (Model::keep_pieces).
  Trainer(std::shared_ptr<Model> model, Recipe recipe, std::shared_ptr<const Dataset> data, const PlanOptions& options = {},
          Communicator* ranks = nullptr);
  /// Ends an update that advance() left half done: the model's weights are those of a whole step.
  ~Trainer();

  /// One optimizer step on K x batch rows of each input, or fewer, the micro-batches in order. Throws invalid_argument for views that do
  /// not fit the model's inputs (names both), not_finite for NaN in an input, cancelled; the state is then that of the last whole step.
  StepReport step(std::span<const HostView> batch);

  /// The same on the data's next rows. Throws wrong_state without data.
  StepReport step();

  /// The same step in slices: works until `deadline` (os::seconds()) and at least one instruction, for whose rows it waits no longer; the
  /// report when the step is done. With several ranks it is done at once.
  /// Bitwise step()'s result. Any error before the update undoes the slices so far.
  std::optional<StepReport> advance(std::span<const HostView> batch, double deadline);
  std::optional<StepReport> advance(double deadline);

  /// A step whose loss the host computes (HostLoss), of one rank, or of a group's (HostLossStep), which the caller ends on an error. Any
  /// error undoes the pairs so far. The outputs are valid until the next forward.
  std::span<const HostView> forward(std::span<const HostView> batch);
  void backward(std::span<const HostView> output_gradients);
  void backward_own_loss();
  StepReport apply();

  /// Forgets a step that is under way, unless its update has begun.
  void abandon();

  /// The gradient of the last step before clipping, of the mean loss, into f32 (a host's own loss: of the sum over its backwards). Throws
  /// wrong_state when no whole step's gradients are there, not_found for what is no trained parameter.
  void gradient(std::string_view parameter, const HostView& to, JointCall* joint = nullptr) const;

  /// Changes lr or another key of the learning-rate schedule from the next step on. Throws unsupported for what the plan was made from,
  /// invalid_argument where the keys then contradict each other; nothing has changed then.
  void set(std::string_view key, std::string_view json);

  /// The learning rate of the step after k successful ones, by the host. Called once at the beginning of a step, before anything else of
  /// it; what it throws ends the step.
  using LearningRate = std::function<double(int64_t k)>;
  /// From the next step on; empty: the recipe's schedule again. Gives back what was there before.
  LearningRate set_schedule(LearningRate rate);
  /// The first step that was made past the end of the recipe's schedule, which the log was warned of then; 0: none.
  int64_t step_past_schedule() const { return step_past_schedule_; }

  /// Adds up loss and metrics over all rows of a dataset, with dropout off. Nothing changes. A cancel is seen also while rows are late;
  /// the fill that is then in progress keeps the dataset until it returns, and the destructor waits for it. Of a model in pieces all ranks
  /// call, with the same rows, and what fails on one ends the group.
  Evaluation evaluate(const std::shared_ptr<const Dataset>& data);

  // The moving average of the weights, of the recipe's ema_decay: each throws wrong_state where that is 0. Before the first update the
  // weights are their average.
  /// evaluate() with the average in the weights' place. The weights are not touched.
  Evaluation evaluate_average(const std::shared_ptr<const Dataset>& data);
  /// Copies a parameter's average, as Model::get; one that is not trained is its own. Throws not_found.
  void average(std::string_view parameter, const HostView& to, JointCall* joint = nullptr);
  /// Makes the averages the model's weights, from which training goes on; the averages stay. Throws busy as Model::set.
  void use_average(JointCall* joint = nullptr);

  /// What a checkpoint keeps: every parameter and optimizer value, of all ranks. trainer_state.h makes a checkpoint's content of them.
  std::vector<StateTensor> state_tensors() const;
  /// Whether each rank of a host's group has pieces of the state alone (zero 1 or more). Then digest, save, resume, gradients and averages
  /// are made together: by all ranks alike, between the same steps; with a `joint`, what one refuses before it is told on all.
  bool is_in_pieces() const { return team_ && !team_->is_of_threads() && recipe_.zero > 0; }
  /// Some bytes of one of them, from byte `first` on, whoever has them; in pieces (above) all ranks call alike.
  void read_state(const StateTensor& tensor, int64_t first, std::span<std::byte> out) const;
  /// A change of the state begins that all ranks make together.
  void others_change_too() { ++changes_of_all_; }
  /// The group of ranks that have pieces; null: this trainer is none.
  Communicator* group_of_pieces() const { return is_in_pieces() ? &team_->own() : nullptr; }
  /// Of the save that the group makes together now, on all ranks the same.
  std::string save_name() const { return text(group_name_, "-", saves_); }
  /// All ranks of such a save meet, with what has failed on this one (or null), as require_all_fine(). The next one has another name.
  void meet_about_save(const std::exception_ptr& own) const;
  /// Beside them, all that the next step depends on, but for a host's own schedule.
  TrainingState training_state() const;

  /// XXH3-128 over every parameter and optimizer value in name order: name, dtype, shape, bytes. In pieces the ranks ask each other whether
  /// something has changed since the last one: then it is made anew.
  std::string state_digest(JointCall* joint = nullptr) const;
  /// The same, of one rank alone where all have made it since the last step, resume or use_average: what it was then. Throws wrong_state
  /// where this rank's weights have changed since.
  std::string known_state_digest() const;

  /// Throws wrong_state, naming `call`, while a step is under way and after a resume that could not be undone; cancelled, and undoes it,
  /// when it was cancelled in between.
  void require_whole_step(const char* call);

  /// Makes the running step, or the next, end with cancelled at its next instruction. From any thread or signal handler.
  void cancel() { cancelled_.cancel(); }
  bool take_cancel() { return cancelled_.take(); }
  /// Whether a wait for other ranks ends now: a cancel, of this trainer or asked for elsewhere, of a step that has not begun its update.
  bool ends_waits(bool is_asked) const {
    const bool is_updating = open_ ? !train_->is_computing() : host_step_ && host_step_->is_updating();
    return (is_asked || cancelled_.is_set()) && !is_updating;
  }

  int64_t rows_per_step() const { return recipe_.step_micro_batches() * recipe_.batch; }
  /// Of step(); of the host's loss when the graph has none.
  const Plan& plan() const { return executor().plan(); }
  /// Of all ranks of this process, by rank.
  std::vector<const Plan*> plans() const;
  /// Bytes of elements that each rank of this process has sent so far (Communicator::sent_bytes); one rank: none.
  std::vector<int64_t> sent_bytes() const;
  /// Where the time of the last steps went, by rank (timeline.h); of one rank nothing.
  std::span<const StepTimes> timeline() const;
  std::string timeline_json() const;  // of st_trainer_timeline
  const Executor& executor() const { return train_ ? train_->executor() : host_step_->executor(); }
  const Recipe& recipe() const { return recipe_; }
  Workers& workers() const { return *workers_; }
  Model& model() const { return *model_; }
  int64_t steps() const { return attempts_; }
  /// Whether it goes on with a checkpoint's run.
  bool has_resumed() const { return has_resumed_; }
  /// Of the next step; 1 where the recipe scales no loss.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }
  /// Bytes of all arenas that this trainer and its model hold.
  int64_t memory_bytes() const;
  /// Gives back what only makes the next evaluation or short step quicker.
  void trim();

 private:
  /// A step on the graph's own loss, from its first instruction on.
  struct OpenStep {
    double lr = 0, seconds = 0;
    int64_t rows = 0;
    bool from_data = false;
  };

  friend class Resume;

  void begin_call(const char* call);
  void require_no_open_step(const char* call);
  double learning_rate() const;
  void begin_step_on(std::span<const HostView> batch);
  void begin_step_on_own(std::span<const HostView> batch);
  void begin_step_on_data();
  void begin_step(int64_t rows, bool from_data);
  bool go_on(double deadline, std::optional<std::span<const HostView>> batch, const PlannedStep::Bind& bind);
  void require_host_loss_fits(const char* call) const;
  bool go_on_with(std::span<const HostView> batch, double deadline);
  bool go_on_with_data(double deadline);
  void undo();
  StepReport finish_step();
  void report_exchange(StepReport& report, double exposed, const ExchangeQueue* exchanges) const;
  void add_noise(int64_t rows);
  template <class Call>
  auto undoing_on_error(const Call& call) {
    try {
      return call();
    } catch (...) {
      undo();
      throw;
    }
  }
  WeightAverage& average_for(const char* call);
  std::vector<const Executor*> executors() const;
  void know_others();
  StepReport report_of(const StepSlots& slots, double lr, double seconds, int64_t tokens);
  void warn_past_schedule(double lr);

  std::shared_ptr<Model> model_;
  Recipe recipe_;
  PlanOptions options_;
  std::unique_ptr<Workers> workers_;
  CancelToken cancelled_;
  LrSchedule schedule_;
  LearningRate host_schedule_;                       // empty: the recipe's
  std::optional<LossScaler> scaler_;                 // none: the recipe scales no loss
  GradientNoise noise_;                              // of the recipe's gradient_noise_scale
  Storage storage_;                                  // the model's parameters; gradients and moments of this trainer
  std::unique_ptr<RankTeam> team_;                   // none: there is one rank
  std::optional<std::vector<RegionId>> recomputed_;  // zero 3 in a group: what all ranks recompute; none: the recipe says which
  std::unique_ptr<PlannedStep> train_;               // of rank 0; none: the graph has no loss
  BatchBinding inputs_;
  std::unique_ptr<HostLossStep> host_step_;
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<WeightAverage> average_;  // of what the recipe's ema_decay keeps; none: it is 0
  std::shared_ptr<const Dataset> data_;
  std::unique_ptr<Feed> feed_;
  std::optional<OpenStep> open_;  // step and advance
  struct {
    const Executor* executor = nullptr;  // none: no whole step's gradients are there
    double unit = 1;
  } gradients_;
  int64_t attempts_ = 0, updates_ = 0, tokens_ = 0;
  int64_t step_past_schedule_ = 0;
  int64_t items_taken_ = 0;                         // of the data's stream
  mutable std::string graph_digest_, data_digest_;  // made when they are first saved or compared
  std::vector<StateTensor> others_;                 // in pieces: those of the other ranks
  std::string group_name_;                          // of the group, which no other has
  mutable int64_t saves_ = 0;                       // how often it has met about one
  mutable std::string state_digest_;                // in pieces; of the gate's changes() then
  mutable int64_t state_digest_at_ = -1;
  mutable int64_t state_digest_of_ = -1;  // and of this:
  int64_t changes_of_all_ = 0;            // steps, resumes and averages used: what all ranks do alike
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  bool has_resumed_ = false;  // so that optimizer state may be other than zero before the first update
  bool is_mixed_ = false;     // a resume ended halfway, and there was no memory to undo it, or an update of pieces did
};

}  // namespace st
