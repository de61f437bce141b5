// Measures a model on a dataset, dropout off: the loss, and the outputs that the graph calls metrics.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "exec/executor.h"
#include "train/batch_binding.h"
#include "train/evaluation_rows.h"
#include "train/metrics.h"
#include "train/model.h"

namespace st {

struct Evaluation {
  double loss = 0;   // mean over the counted rows; NaN without a loss in the graph
  double count = 0;  // rows counted; without a loss, all
  std::vector<Metric> metrics;
};

class Evaluator {
 public:
  /// Borrows all of them. Plans are made when they are needed, one for each number of rows. `lends`: run() may be given other weights than
  /// the model's.
  Evaluator(Model& model, Storage& storage, Workers& workers, CancelToken& cancelled, int64_t batch, bool lends = false);
  /// Of a model in pieces: with the other ranks, who call run() alike, and whom a rank's error ends; its pieces are as in `step`.
  void gather_from(Communicator& ranks, const Program& step);

  /// Adds up over all rows of the dataset, `batch` at a time. Throws wrong_state when the graph has neither a loss nor metrics, and as
  /// EvaluationRows::each(). `weights`: device memory that stands for each of the model's parameters(), in their order; empty: the model's.
  Evaluation run(const std::shared_ptr<const Dataset>& data, std::span<const std::byte* const> weights = {});
  /// Bytes of the plans' own arenas, and of buffers that a late fill still writes to.
  int64_t own_bytes() const;
  /// Gives back the plans: the next run makes them anew.
  void trim();

 private:
  Evaluation run_here(const std::shared_ptr<const Dataset>& data, std::span<const std::byte* const> weights);
  Executor& plan_for(int64_t rows);
  void add_up(std::span<const HostView> rows, int64_t count, std::span<const std::byte* const> weights, Evaluation& sums);

  Model& model_;
  Storage& storage_;
  Workers& workers_;
  CancelToken& cancelled_;
  bool lends_;
  std::unique_ptr<ExchangeQueue> ranks_;  // none: the model is whole
  const Program* step_ = nullptr;         // of which these have pieces
  std::vector<std::string> metrics_;
  BatchBinding inputs_;
  std::map<int64_t, std::unique_ptr<Executor>> plans_;  // by rows
  EvaluationRows rows_;
};

/// Bytes of the arenas that an executor has for itself alone.
int64_t own_bytes(const Executor& executor);

}  // namespace st
