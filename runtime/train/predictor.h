// The predictor: forward passes of a model from any number of threads at once, also while a trainer steps.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "train/generate.h"
#include "train/host_view.h"
#include "train/model.h"

namespace st {

struct PredictorOptions {
  bool shared = false;  // the model's weights as they are, instead of a snapshot of its own
  int threads = 1;      // of one run
};

/// All calls from any thread. Runs take turns with passes made beforehand (an executor with its buffers); as many are made as ever ran at
/// once for the same rows and outputs, and a run that finds one allocates nothing.
class Predictor {
 public:
  /// Takes a snapshot. Throws out_of_memory before anything is touched. `joint`: of a model in pieces all ranks make one, of their pieces,
  /// and all its calls together, each in a joint call of the same communicator, which it borrows.
  explicit Predictor(std::shared_ptr<Model> model, PredictorOptions options = {}, JointCall* joint = nullptr);
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  /// One forward pass, dropout off. Inputs: those that the outputs depend on, of the same number of rows; more are fine. Sees the weights
  /// of one whole step. Throws not_found for an unknown name (the nearest is named), invalid_argument for what does not fit, not_finite for
  /// NaN in an input, busy with shared weights while a step writes them.
  /// Of ranks each has rows of its own, and all want the same outputs.
  void run(std::span<const HostView> inputs, std::span<const HostView> outputs, JointCall* joint = nullptr);

  /// Takes a new snapshot: the newest whole step. Runs that have begun keep the old one, whose memory the next but one refresh uses again.
  /// With shared weights there is nothing to take.
  void refresh(JointCall* joint = nullptr);

  /// Text as of Generator::run, with the weights of one snapshot throughout; with shared ones busy while a step writes them.
  std::vector<int32_t> generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                const std::function<bool(int32_t)>& on_token, JointCall* joint = nullptr);

  /// Gives back what is only kept for speed: idle passes and the snapshot before.
  void trim();

 private:
  struct Form;      // what a run asks for, planned
  struct Pass;      // an executor of a form over a snapshot
  struct Snapshot;  // weights, and the passes over them
  class Turn;       // a run's hold on a snapshot and a pass

  void require_joint(const JointCall* joint) const;
  std::shared_ptr<Snapshot> make_snapshot() const;
  int64_t rows_of(std::span<const HostView> inputs, std::span<const HostView> outputs) const;
  std::shared_ptr<Form> form_of(int64_t rows, std::span<const HostView> outputs);
  std::shared_ptr<Form> find_form(int64_t rows, std::span<const HostView> outputs);  // mutex_ is held
  std::shared_ptr<Form> plan(int64_t rows, std::span<const HostView> outputs) const;

  const std::shared_ptr<Model> model_;
  const PredictorOptions options_;
  const std::unique_ptr<ExchangeQueue> ranks_;  // none: all of the weights are here
  std::mutex refreshing_;                       // one refresh at a time; before mutex_

  std::mutex mutex_;  // held for moments only: no pass runs under it
  std::shared_ptr<Snapshot> current_, spare_;
  std::vector<std::shared_ptr<Form>> forms_;
  uint64_t clock_ = 0;  // of the forms' last uses
};

}  // namespace st
