// A trainer: makes one optimizer step at a time, planned completely in advance.
#pragma once

#include <scaletrain/plan.h>
#include <scaletrain/trainer.h>

#include <chrono>
#include <optional>
#include <scaletrain/communicator.hpp>
#include <scaletrain/data.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/recipe.hpp>
#include <string>
#include <vector>

namespace scaletrain {

struct StepReport {
  bool skipped = false;  // the gradient was not finite and nothing was updated
  int64_t step = 0;
  double loss = 0;  // before the step's update
  double lr = 0;
  double grad_norm = 0;
  double loss_scale = 0;
  int64_t tokens = 0;
  double tokens_per_second = 0;
  double milliseconds = 0;
  int64_t memory_bytes = 0;
  double gradient_noise_scale = 0;  // NaN: not measured, or not known yet
  std::string save_error;           // why a save of save_every() failed, reported once; "": none did
  int64_t saved_step = -1;          // of the newest checkpoint on disk from these saves; -1: none yet
};

struct Metric {
  std::string name;
  double mean = 0;
};
struct Evaluation {
  double loss = 0;
  double count = 0;
  std::vector<Metric> metrics;  // one for each output named "metric.*"
};

/// Called with each step's report; false ends the run.
using StepFunction = std::function<bool(const StepReport&)>;
/// The learning rate of the step after k successful ones.
using RateFunction = std::function<double(int64_t k)>;

/// On ranks of a communicator, calls that read weights or state come in pairs (scaletrain/trainer.h has the table): without a suffix they
/// read what this rank has, and throw wrong_state, at once, if other ranks have parts of it; those that end in _collective are made by all
/// ranks, for every recipe. All ranks make steps, resume and use_average.
class Trainer : public detail::Handle<st_trainer, st_trainer_destroy> {
 public:
  /// Each step is given its batch.
  Trainer(const Model& model, const Recipe& recipe) : Handle(detail::Access::host(model)) {
    done(st_trainer_create(model.get(), recipe.get(), nullptr, out()));
  }
  /// Steps draw from `data`, which stays alive.
  Trainer(const Model& model, const Recipe& recipe, const Data& data) : Handle(detail::Access::host(model)), fault_(data.fault_) {
    done(st_trainer_create(model.get(), recipe.get(), data.get(), out()));
  }
  /// The trainer of one rank of the communicator. Every rank makes one with the same model, recipe and data, and makes the same steps.
  /// Without data a step is given this rank's own rows.
  Trainer(const Model& model, const Recipe& recipe, const Communicator& ranks) : Handle(detail::Access::host(model)) {
    done(st_trainer_create_in_group(model.get(), recipe.get(), nullptr, ranks.get(), out()));
  }
  Trainer(const Model& model, const Recipe& recipe, const Data& data, const Communicator& ranks)
      : Handle(detail::Access::host(model)), fault_(data.fault_) {
    done(st_trainer_create_in_group(model.get(), recipe.get(), data.get(), ranks.get(), out()), fault_.get());
  }

  /// Makes one optimizer step on `batch`. If it throws, the state is that of the last whole step.
  StepReport step(const Views& batch) const {
    return reading([&] {
      st_step_report raw = fresh();
      done(st_trainer_step(get(), batch.size(), batch.raw(), &raw), fault_.get());
      return report(raw);
    });
  }
  /// Makes one step on the data's next rows.
  StepReport step() const { return step(Views()); }

  /// Makes steps until `steps` in all are done, stop() is called, or on_step returns false. An exception of on_step ends the run and is
  /// rethrown here. on_step may make every call of this trainer except run() and close().
  void run(int64_t steps, const StepFunction& on_step) const {
    Run run{on_step, {}, false};
    const st_status status = st_trainer_run(get(), steps, Run::call, &run);
    if (run.ended && status == ST_CALLBACK) return done(ST_OK);
    if (run.fault.raised()) return done(status, &run.fault);
    done(status, fault_.get());
  }
  void run(int64_t steps) const { done(st_trainer_run(get(), steps, nullptr, nullptr), fault_.get()); }

  /// Works on the step for about `budget`; returns the report when it is complete. Until then call it again with the same batch.
  std::optional<StepReport> advance(const Views& batch, std::chrono::nanoseconds budget) const {
    return reading([&]() -> std::optional<StepReport> {
      st_step_report raw = fresh();
      int32_t whole = 0;
      done(st_trainer_advance(get(), batch.size(), batch.raw(), budget.count(), &whole, &raw), fault_.get());
      if (whole == 0) return std::nullopt;
      return report(raw);
    });
  }
  std::optional<StepReport> advance(std::chrono::nanoseconds budget) const { return advance(Views(), budget); }

  // A step whose loss the host computes: forward or forward_into, backward, apply.
  /// The outputs are owned by the trainer until its next call.
  Views forward(const Views& batch) const {
    int64_t m = 0;
    const st_named_view* outputs = nullptr;
    done(st_trainer_forward(get(), batch.size(), batch.raw(), &m, &outputs), fault_.get());
    return Views(m, outputs);
  }
  /// The same; copies outputs to the program's arrays, which may be in the memory of the context's device. Those left out are not copied.
  void forward_into(const Views& batch, const Views& outputs) const {
    for (const NamedView& output : outputs) detail::writable("Trainer::forward_into: output", output.view, output.name);
    done(st_trainer_forward_into(get(), batch.size(), batch.raw(), outputs.size(), outputs.raw()), fault_.get());
  }
  void backward(const Views& output_gradients) const { done(st_trainer_backward(get(), output_gradients.size(), output_gradients.raw())); }
  /// Backward of the graph's own loss.
  void backward() const { backward(Views()); }
  StepReport apply() const {
    return reading([&] {
      st_step_report raw = fresh();
      done(st_trainer_apply(get(), &raw));
      return report(raw);
    });
  }

  Evaluation evaluate(const Data& data) const { return evaluation(data, st_trainer_evaluate); }
  Evaluation evaluate_collective(const Data& data) const { return evaluation(data, st_trainer_evaluate_collective); }

  // The moving average of the weights, with the recipe's ema_decay.
  /// evaluate() with the averages in place of the weights.
  Evaluation evaluate_average(const Data& data) const { return evaluation(data, st_trainer_evaluate_average); }
  Evaluation evaluate_average_collective(const Data& data) const { return evaluation(data, st_trainer_evaluate_average_collective); }
  /// Copies a parameter's average.
  void average(const std::string& name, const View& to) const { read(st_trainer_average, "Trainer::average", name, to); }
  void average_collective(const std::string& name, const View& to) const {
    read(st_trainer_average_collective, "Trainer::average_collective", name, to);
  }
  /// Makes the averages the model's weights.
  void use_average() const { done(st_trainer_use_average(get())); }

  /// Copies a parameter's gradient of the last step; f32.
  void gradient(const std::string& name, const View& to) const { read(st_trainer_gradient, "Trainer::gradient", name, to); }
  void gradient_collective(const std::string& name, const View& to) const {
    read(st_trainer_gradient_collective, "Trainer::gradient_collective", name, to);
  }
  /// Changes a key of the recipe from the next step on.
  void set(const std::string& key, const std::string& json_value) const { done(st_trainer_set(get(), key.c_str(), json_value.c_str())); }
  std::string value(const std::string& key) const {
    return text([&](st_trainer* trainer, const char** json) { return st_trainer_get(trainer, key.c_str(), json); });
  }

  /// Sets the host's function for the learning rate after k successful steps, in place of the recipe's schedule; empty: the recipe's again.
  /// Called once at the start of each step. Its exception ends the step and is rethrown there. It is destroyed when it is replaced, or with
  /// the trainer.
  void set_schedule(const RateFunction& rate) const {
    if (!rate) return done(st_trainer_set_schedule(get(), nullptr, nullptr, nullptr));
    auto made = std::make_unique<Rate>(Rate{rate, host()});
    const st_status status = st_trainer_set_schedule(get(), Rate::call, Rate::end, made.get());
    if (status == ST_OK) static_cast<void>(made.release());  // the library owns it, whatever done() throws
    done(status);
  }

  // From any thread, while another is in a step, a run or an evaluation.
  void stop() const { check(st_trainer_stop(get())); }
  void cancel() const { check(st_trainer_cancel(get())); }

  // Checkpoints; defined in checkpoint.hpp.
  /// Saves the whole run. metadata: a JSON object, or "". Returns when it is on disk. Collective: all ranks write one checkpoint together,
  /// rank 0 with the one that owns the folder, the others with read_only ones of it.
  void save(const Checkpoint& checkpoint, const std::string& metadata = "") const;
  void save_collective(const Checkpoint& checkpoint, const std::string& metadata = "") const;
  /// Returns when the state is copied; the files are written in the background.
  Pending save_async(const Checkpoint& checkpoint, const std::string& metadata = "") const;
  Pending save_async_collective(const Checkpoint& checkpoint, const std::string& metadata = "") const;
  /// Saves in the background after every so many steps, and when so many minutes have passed since the last such save; 0: not by this. An
  /// error is in the report of a later step.
  void save_every(const Checkpoint& checkpoint, int64_t steps, double minutes = 0) const;
  void save_no_more() const;
  void save_every_collective(const Checkpoint& checkpoint, int64_t steps, double minutes = 0) const;
  void save_no_more_collective() const;
  /// Restores the checkpoint's state ("": the newest valid): later steps have the bits of its run. Status not_found says only that
  /// there is none; invalid_argument, that it is of another model or run. If it throws, the trainer is unchanged.
  LoadReport resume(const Checkpoint& checkpoint, const std::string& name = "", const ReadOptions& options = ReadOptions()) const;
  /// Fills `report` also when it throws because names did not match.
  void resume(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options, LoadReport& report) const;

  /// With sharded state, the last collective one, unless the state has changed since.
  std::string digest() const { return text(st_trainer_digest); }
  std::string digest_collective() const { return text(st_trainer_digest_collective); }
  std::string plan() const { return text(st_trainer_plan); }
  std::string explain() const { return text(st_trainer_explain); }
  /// JSON: where the time of the last steps went, by rank; with pipeline stages also the bubble and the actions of each rank.
  std::string timeline() const { return text(st_trainer_timeline); }
  /// JSON: the predicted time of a step, and how it differs from the last one. machine: JSON of a calibrated machine; "": this one, from a
  /// table of processors.
  std::string forecast(const std::string& machine = "") const {
    return text([&](st_trainer* trainer, const char** json) {
      return st_trainer_forecast(trainer, machine.empty() ? nullptr : machine.c_str(), json);
    });
  }

  /// Logs one JSON object a step to `path`, from the next step on.
  void log(const std::string& path) const { done(st_trainer_log(get(), path.c_str())); }
  void log_end(double validation_loss) const { done(st_trainer_log_end(get(), validation_loss)); }
  /// One HTML page about the run so far. facts: a JSON object, or "".
  void write_report(const std::string& path, const std::string& facts) const {
    done(st_trainer_write_report(get(), path.c_str(), facts.empty() ? nullptr : facts.c_str()));
  }

 private:
  struct Run {
    const StepFunction& on_step;
    detail::Fault fault;
    bool ended;
    static st_status call(void* user, const st_step_report* raw) {
      Run& run = *static_cast<Run*>(user);
      const st_status status = detail::shielded(run.fault, [&] { run.ended = run.on_step && !run.on_step(report(*raw)); });
      return run.ended ? static_cast<st_status>(ST_CALLBACK) : status;
    }
  };
  struct Rate {
    RateFunction at;
    std::shared_ptr<detail::Host> host;  // keeps an exception until the call has returned
    static st_status call(void* user, int64_t k, double* lr) {
      const Rate& rate = *static_cast<Rate*>(user);
      return detail::shielded(rate.host->callback, [&] { *lr = rate.at(k); });
    }
    static void end(void* user) { delete static_cast<Rate*>(user); }
  };
  template <class Call>
  void read(Call call, const char* what, const std::string& name, const View& to) const {
    const st_view raw = detail::writable(what, to).raw();
    done(call(get(), name.c_str(), &raw));
  }
  template <class Evaluate>
  Evaluation evaluation(const Data& data, const Evaluate& evaluate) const {
    return reading([&] {
      st_evaluation raw;
      done(st_evaluation_init(&raw, sizeof raw));
      done(evaluate(get(), data.get(), &raw), data.fault_.get());
      Evaluation found{raw.loss, raw.count, {}};
      for (int64_t i = 0; i < raw.metric_count; ++i) found.metrics.push_back({raw.metrics[i].name, raw.metrics[i].mean});
      return found;
    });
  }
  static st_step_report fresh() {
    st_step_report raw;
    check(st_step_report_init(&raw, sizeof raw));
    return raw;
  }
  static StepReport report(const st_step_report& raw) {
    return {raw.skipped != 0,
            raw.step,
            raw.loss,
            raw.lr,
            raw.grad_norm,
            raw.loss_scale,
            raw.tokens,
            raw.tokens_per_second,
            raw.milliseconds,
            raw.memory_bytes,
            raw.gradient_noise_scale,
            raw.save_error == nullptr ? "" : raw.save_error,
            raw.saved_step};
  }

  std::shared_ptr<detail::Fault> fault_;  // of the data's fill
};

}  // namespace scaletrain
