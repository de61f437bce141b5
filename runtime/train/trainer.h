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
#include "exec/step_slots.h"
#include "host/host_loss_step.h"
#include "model/model.h"
#include "optim/gradient_noise.h"
#include "optim/loss_scaler.h"
#include "optim/lr_schedule.h"
#include "recipe/recipe.h"
#include "report/metrics.h"
#include "team/ranks.h"
#include "train/evaluation.h"
#include "train/state_tensor.h"
#include "train/training_state.h"
#include "train/weight_average.h"

namespace st {

class Trainer {
 public:
  /// Plans the step and allocates all its memory, so that a step allocates nothing.
  ///   data    null: each step is given its batch
  ///   model   without a loss: only forward, backward and apply train it
  ///   ranks   the group in which this trainer is a rank; must outlive the trainer. Each rank has a trainer of the same recipe, model
  ///           and data
  ///           - all make the same calls of step() and advance(), on the data, which each sees whole, or on a batch of their own rows:
  ///             those of micro-batches k = g * size + rank, in order
  ///           - recipe.ranks is the group's size, or 1
  ///           - zero 3: the model keeps only this rank's shards of the parameters (Model::keep_pieces)
  ///           - after an error, of this call or a step, the caller must end the group, or the other ranks wait; except for rank_mismatch,
  ///             which all ranks throw
  /// Throws invalid_argument (recipe and model do not fit), rank_mismatch (trainers of different runs), out_of_memory with bytes needed and
  /// available, before anything is allocated.
  Trainer(std::shared_ptr<Model> model, Recipe recipe, std::shared_ptr<const Dataset> data, const PlanOptions& options = {},
          Communicator* ranks = nullptr);
  /// Completes an update that advance() left unfinished, so that the model has the weights of a whole step.
  ~Trainer();

  /// One optimizer step on K x batch rows of each input, or fewer, in micro-batch order. Throws invalid_argument for views that do not fit
  /// the model's inputs (shows both), not_finite for NaN in an input, cancelled; the state is that of the last whole step then.
  StepReport step(std::span<const HostView> batch);

  /// The same on the data's next rows. Throws wrong_state without data.
  StepReport step();

  /// The same step in slices, bitwise equal to step(): runs until `deadline` (os::seconds()), and at least one instruction unless its rows
  /// are not ready by then. Returns the report when the step is done. With several ranks one call runs the whole step. Any error before the
  /// update undoes the slices so far.
  std::optional<StepReport> advance(std::span<const HostView> batch, double deadline);
  std::optional<StepReport> advance(double deadline);

  /// A step whose loss the host computes (HostLoss), on one rank or in a group (HostLossStep), which the caller must end after an error.
  /// Any error undoes the micro-batches so far. The outputs are valid until the next forward.
  std::span<const HostView> forward(std::span<const HostView> batch);
  void forward_into(std::span<const HostView> batch, std::span<const HostView> outputs);
  void backward(std::span<const HostView> output_gradients);
  void backward_own_loss();
  StepReport apply();

  /// Abandons the current step unless its update has begun.
  void abandon();

  /// Copies the last step's gradient of the mean loss, before clipping, as f32; with a host's own loss, the sum over its backwards. Throws
  /// wrong_state if there are no gradients of a whole step, not_found for a parameter that is unknown or not trained.
  void gradient(std::string_view parameter, const HostView& to, ShardedModelCall* collective = nullptr) const;

  /// Changes lr or another key of the learning-rate schedule from the next step on. Throws unsupported for keys that the plan depends on,
  /// invalid_argument if the keys would contradict each other; nothing has changed then.
  void set(std::string_view key, std::string_view json);

  /// Host function: the learning rate of the step after k successful ones. Called once at the start of a step, before anything else; its
  /// exceptions end the step.
  using LearningRate = std::function<double(int64_t k)>;
  /// Applies from the next step on; empty: the recipe's schedule. Returns the previous function.
  LearningRate set_schedule(LearningRate rate);
  /// The first step past the end of the recipe's schedule, at which the log got a warning; 0: none.
  int64_t step_past_schedule() const { return step_past_schedule_; }

  /// Computes loss and metrics over all rows of a dataset, without dropout. Does not change the state. A cancel also works while rows are
  /// late; a fill in progress then keeps the dataset until it returns, and the destructor waits for it. On a sharded model it is a
  /// collective call with the same rows on all ranks, and an error on one ends the group.
  Evaluation evaluate(const std::shared_ptr<const Dataset>& data);

  // The moving average of the weights (recipe key ema_decay); each call throws wrong_state if that is 0. Before the first update the
  // average is the weights.
  /// evaluate() with the average in place of the weights, which do not change.
  Evaluation evaluate_average(const std::shared_ptr<const Dataset>& data);
  /// Copies a parameter's average, like Model::get; for a parameter that is not trained, the parameter itself. Throws not_found.
  void average(std::string_view parameter, const HostView& to, ShardedModelCall* collective = nullptr);
  /// Copies the averages into the model's weights, from which training continues; the averages remain. Throws busy like Model::set.
  void use_average(ShardedModelCall* collective = nullptr);

  /// The tensors of a checkpoint: every parameter and optimizer value, of all ranks. See trainer_state.h for a checkpoint's content.
  std::vector<StateTensor> state_tensors() const;
  /// Whether ranks have different parts of the state.
  bool is_in_pieces() const { return recipe_.zero > 0 || recipe_.stages > 1 || recipe_.tensor > 1; }
  /// Whether the state is sharded over a host's group (zero 1 or more, stages, or tensor). Then digest, save, resume, gradients and
  /// averages are collective calls: all ranks make them, with equal arguments, between the same steps. With a `collective`, a refusal on
  /// one rank is an error on all.
  bool is_sharded() const { return group_of() != nullptr && is_in_pieces(); }
  /// Reads bytes of a state tensor from byte `first`, on whichever rank they are; a collective call if is_sharded().
  void read_state(const StateTensor& tensor, int64_t first, std::span<std::byte> out) const;
  /// Marks the start of a change of the state that all ranks make together.
  void others_change_too() { ++changes_of_all_; }
  /// The group in which this trainer is a rank; null: it is alone, or its ranks are threads.
  Communicator* group_of() const { return group_; }
  /// The group over which the state is sharded; null: it is not sharded.
  Communicator* sharding_group_of() const { return is_sharded() ? group_of() : nullptr; }
  /// The settings for which ranks have different parts of state or weights, for errors: "zero 1, stages 2".
  std::string sharding_keys() const;
  /// Whether average() of this parameter is a collective call. Throws like average().
  bool needs_others_for_average(std::string_view parameter) { return average_for("average").needs_others(parameter); }
  /// Whether a rank of that group may have other elements than it saves: tensor parallelism cuts within rows.
  bool exchanges_ranges() const { return is_sharded() && recipe_.tensor > 1; }
  /// Everything else that the next step depends on, except a host's own schedule.
  TrainingState training_state() const;

  /// XXH3-128 over every parameter and optimizer value in name order: name, dtype, shape, bytes. If is_sharded(), the ranks first agree
  /// whether anything has changed since the last digest, and compute it again only then.
  std::string state_digest(ShardedModelCall* collective = nullptr) const;
  /// The digest without other ranks: if is_sharded(), the last one, which all ranks must have computed since the last step, resume or
  /// use_average. Throws wrong_state if they have not, or if this rank's weights have changed since; `call` begins the message.
  std::string known_state_digest(const char* call = "digest") const;

  /// Throws wrong_state, naming `call`, during a step and after a resume that could not be rolled back. If the current step was cancelled
  /// between slices, undoes it and throws cancelled.
  void require_whole_step(const char* call);

  /// Makes the current step, or the next one, throw cancelled at its next instruction. Any thread or signal handler.
  void cancel() { cancelled_.cancel(); }
  bool take_cancel() { return cancelled_.take(); }
  /// Whether a wait for other ranks must end: this trainer, or the caller (`is_asked`), was cancelled, and the step has not begun its
  /// update.
  bool ends_waits(bool is_asked) const {
    const bool is_updating = open_ ? !planned().is_computing() : host_step_ && host_step_->is_updating();
    return (is_asked || cancelled_.is_set()) && !is_updating;
  }

  int64_t rows_per_step() const { return recipe_.step_micro_batches() * recipe_.batch; }
  /// The plan of step(), or of the host's loss if the graph has no loss.
  const Plan& plan() const { return executor().plan(); }
  /// The plans of all ranks of this process, by rank.
  std::vector<const Plan*> plans() const;
  /// Bytes of elements that each rank of this process has sent so far (Communicator::sent_bytes); empty with one rank.
  std::vector<int64_t> sent_bytes() const;
  /// Times of the last steps, by rank (timeline.h); empty with one rank.
  std::span<const StepTimes> timeline() const;
  PipelineTimes pipeline_times() const;  // of the last step; no lanes with one stage
  std::string timeline_json() const;     // of st_trainer_timeline
  /// Sets what is called after each instruction of a step on the graph's own loss, for each rank of this process (Executor::watch: nothing
  /// is posted then). Between steps; short micro-batches are not watched.
  void watch(const std::function<Executor::Watch(size_t rank)>& of_rank);
  /// How ranks that are processes exchange their devices' memory, and why, for people; empty: they are threads, or have no such memory.
  const std::string& device_exchange() const { return ranks_->groups().device_exchange(); }
  const Executor& executor() const { return has_loss() ? ranks_->own().step()->executor() : host_step_->executor(); }
  const Recipe& recipe() const { return recipe_; }
  Workers& workers() const { return ranks_->own().workers(); }
  Model& model() const { return *model_; }
  int64_t steps() const { return attempts_; }
  /// Whether it was resumed from a checkpoint.
  bool has_resumed() const { return has_resumed_; }
  /// The loss scale of the next step; 1 without loss scaling.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1; }
  /// Bytes of all arenas that this trainer and its model hold.
  int64_t memory_bytes() const;
  /// Frees what only speeds up the next evaluation or short step.
  void trim();

 private:
  /// A step on the graph's own loss, from its first instruction on.
  struct OpenStep {
    double lr = 0, seconds = 0;
    int64_t rows = 0;
    bool from_data = false;
  };

  friend class Resume;

  bool has_loss() const { return static_cast<bool>(model_->program().loss_sum); }
  PlannedStep& planned() const { return *ranks_->own().step(); }  // of this trainer's own rank; the graph has a loss

  // trainer_setup.cpp
  bool is_split() const { return recipe_.stages > 1 || recipe_.tensor > 1; }
  bool shards_masters() const;
  void check_recipe() const;
  void agree_on_sharding() const;
  void move_model_to_host(const MemoryLayout& each, int ranks, bool have_copies);
  void give_up_weights(const Plan& plan, bool on_host);
  void make_steps(std::unique_ptr<RankStep> own, int threads, BegunPlans* begun);

  void begin_call(const char* call);
  void require_no_open_step(const char* call);
  double learning_rate() const;
  void begin_step_on(std::span<const HostView> batch);
  void begin_step_on_own(std::span<const HostView> batch);
  void begin_step_on_data();
  void begin_step(int64_t rows, bool from_data);
  bool go_on(std::optional<std::span<const HostView>> batch, double deadline);
  bool are_pieces_mixed() const;
  void note_mixed_state(bool is_mixed);
  void require_host_loss_fits(const char* call) const;
  template <class Call>
  auto forward_by(std::span<const HostView> batch, const Call& call);
  void undo();
  StepReport finish_step();
  void report_exchange(StepReport& report) const;
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
  StepReport report_of(const StepSlots& slots, double lr, double seconds, int64_t tokens);
  void warn_past_schedule(double lr);

  /// Moves a model's parameters back to its device: the constructor failed after it had moved them. Destroyed after all that shares them.
  struct MoveBack {
    MoveBack() = default;
    ~MoveBack();
    MoveBack(const MoveBack&) = delete;
    MoveBack& operator=(const MoveBack&) = delete;

    std::shared_ptr<Model> model;  // null: there is nothing to undo
  };

  std::shared_ptr<Model> model_;
  MoveBack move_back_;
  Recipe recipe_;
  PlanOptions options_;
  Communicator* group_ = nullptr;  // the host's, of several ranks; null: one rank, or ranks are threads
  CancelToken cancelled_;
  LrSchedule schedule_;
  LearningRate host_schedule_;        // empty: the recipe's
  std::optional<LossScaler> scaler_;  // empty: no loss scaling
  GradientNoise noise_;               // for the recipe key gradient_noise_scale
  Storage whole_;                     // the model's parameters, or their pieces; the own rank's too, but for threads with copies
  std::optional<std::vector<RegionId>> recomputed_;  // zero 3 in a group: the scopes that all ranks recompute; empty: the recipe's
  std::unique_ptr<Ranks> ranks_;
  std::unique_ptr<HostLossStep> host_step_;
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<WeightAverage> average_;  // empty: the recipe's ema_decay is 0
  std::shared_ptr<const Dataset> data_;
  std::optional<OpenStep> open_;  // step and advance
  struct {
    const Executor* executor = nullptr;  // null: there are no gradients of a whole step
    double unit = 1;
  } gradients_;
  int64_t attempts_ = 0, updates_ = 0, tokens_ = 0;
  int64_t step_past_schedule_ = 0;
  int64_t items_taken_ = 0;                         // from the data's stream
  mutable std::string graph_digest_, data_digest_;  // computed when first saved or compared
  std::vector<StateTensor> others_;                 // if is_sharded(): the other ranks' shards
  mutable std::string state_digest_;                // if is_sharded(): the last digest,
  mutable int64_t state_digest_at_ = -1;            // the gate's changes() at that time
  mutable int64_t state_digest_of_ = -1;            // and changes_of_all_ at that time
  int64_t changes_of_all_ = 0;                      // steps, resumes and uses of the average, which all ranks make alike
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  bool has_resumed_ = false;     // optimizer state may differ from zero before the first update
  bool has_torn_state_ = false;  // state is from different steps: a resume could not be rolled back, or a sharded update failed
};

}  // namespace st
