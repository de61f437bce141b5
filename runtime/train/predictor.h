// The predictor: forward passes of a model from any number of threads concurrently, also during a trainer's steps.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/host_view.h"
#include "model/model.h"
#include "train/generate.h"

namespace st {

struct PredictorOptions {
  bool shared = false;  // uses the model's current weights instead of its own snapshot
  int threads = 1;      // per run
};

/// Thread-safe. Runs reuse passes (an executor with its buffers). As many passes are made as ever ran at once for the same rows and
/// outputs; a run that finds an idle pass allocates nothing.
class Predictor {
 public:
  /// Takes a snapshot. Throws out_of_memory before anything is allocated. `collective`: on a sharded model the constructor and all calls
  /// are collective calls of all ranks, over the same communicator, which it borrows; each rank keeps a snapshot of its shards.
  explicit Predictor(std::shared_ptr<Model> model, PredictorOptions options = {}, ShardedModelCall* collective = nullptr);
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  /// One forward pass without dropout, with the weights of one whole step. `inputs`: those that the outputs depend on, with equal numbers
  /// of rows; others are ignored. Over ranks, each has its own rows, and all ask for the same outputs. Throws not_found for an unknown name
  /// (suggests the nearest), invalid_argument for a type or shape that does not match, not_finite for NaN in an input, busy with shared
  /// weights while a step writes them.
  void run(std::span<const HostView> inputs, std::span<const HostView> outputs, ShardedModelCall* collective = nullptr);

  /// Takes a new snapshot, of the latest whole step. Runs in progress keep the old one, whose memory the refresh after the next reuses.
  /// Does nothing with shared weights.
  void refresh(ShardedModelCall* collective = nullptr);

  /// Generates text like Generator::run, with the weights of one snapshot throughout; throws busy with shared weights while a step writes
  /// them.
  std::vector<int32_t> generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                const std::function<bool(int32_t)>& on_token, ShardedModelCall* collective = nullptr);

  /// Frees what is kept only for speed: idle passes and the previous snapshot.
  void trim();

 private:
  struct Form;      // the plan for a number of rows and a set of outputs
  struct Pass;      // an executor of a form over a snapshot
  struct Snapshot;  // weights, and the passes over them
  class RunHold;    // a run's lease of a snapshot and a pass

  void require_collective(const ShardedModelCall* collective) const;
  std::shared_ptr<Snapshot> make_snapshot() const;
  std::shared_ptr<Form> form_of(int64_t rows, std::span<const HostView> outputs);
  std::shared_ptr<Form> find_form(int64_t rows, std::span<const HostView> outputs);  // mutex_ is held
  std::shared_ptr<Form> plan(int64_t rows, std::span<const HostView> outputs) const;

  const std::shared_ptr<Model> model_;
  const PredictorOptions options_;
  const std::unique_ptr<ExchangeQueue> ranks_;  // null: the model is not sharded
  const bool is_on_host_;                       // its weights, as the model's when it was made
  std::mutex refreshing_;                       // one refresh at a time; locked before mutex_

  std::mutex mutex_;  // held briefly: no pass runs under it
  std::shared_ptr<Snapshot> current_, spare_;
  std::vector<std::shared_ptr<Form>> forms_;
  uint64_t clock_ = 0;  // orders the forms by last use
};

}  // namespace st
