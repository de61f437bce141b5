// Evaluates a model on a dataset, without dropout: the loss, and the outputs named "metric.*".
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "exec/executor.h"
#include "model/model.h"
#include "report/metrics.h"
#include "team/batch_binding.h"
#include "train/evaluation_rows.h"

namespace st {

struct Evaluation {
  double loss = 0;   // mean over the counted rows; NaN if the graph has no loss
  double count = 0;  // rows counted; all rows if the graph has no loss
  std::vector<Metric> metrics;
};

class Evaluator {
 public:
  /// Borrows all arguments. Makes plans on demand, one per number of rows. `borrows`: run() may be given weights other than the model's.
  Evaluator(Model& model, Storage& storage, Workers& workers, CancelToken& cancelled, int64_t batch, bool borrows = false);
  /// For a sharded model, cut as in `step`: run() becomes a collective call of all ranks, and an error on one rank ends the group.
  void gather_from(Communicator& ranks, const Program& step);

  /// Sums over all rows of the dataset, `batch` at a time. `weights`: device memory in place of each of the model's parameters(), in their
  /// order; empty: the model's. Throws wrong_state if the graph has neither a loss nor metrics, and like EvaluationRows::each().
  Evaluation run(const std::shared_ptr<const Dataset>& data, std::span<const Address> weights = {});
  /// Bytes of the plans' own arenas and of buffers that an abandoned fill still writes to.
  int64_t own_bytes() const;
  /// Frees the plans; the next run makes them again.
  void trim();

 private:
  Evaluation run_here(const std::shared_ptr<const Dataset>& data, std::span<const Address> weights);
  Executor& plan_for(int64_t rows, bool borrows);
  void add_up(std::span<const HostView> rows, int64_t count, std::span<const Address> weights, Evaluation& sums);

  Model& model_;
  Storage& storage_;
  Workers& workers_;
  CancelToken& cancelled_;
  bool borrows_;
  std::unique_ptr<ExchangeQueue> ranks_;  // null: the model is not sharded
  const Program* step_ = nullptr;         // defines the shards
  std::vector<std::string> metrics_;
  BatchBinding inputs_;
  std::map<std::pair<int64_t, bool>, std::unique_ptr<Executor>> plans_;  // by rows, and whether weights are bound
  EvaluationRows rows_;
};

}  // namespace st
