// The state of a run apart from its tensors: everything else that its next step depends on, for a checkpoint.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/dataset.h"

namespace st {

struct TrainingState {
  int64_t step = 0;     // attempts, skipped ones too; dropout's random numbers depend on it
  int64_t updates = 0;  // successful steps; learning rate and bias corrections depend on it
  int64_t tokens = 0;
  int64_t items = 0;                                       // taken from the data's stream: its cursor
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last step; NaN: there was none
  double lr = std::numeric_limits<double>::quiet_NaN();    // of the next step, for information; NaN: the host decides it
  std::string loss_scaler;                                 // LossScaler::state(); "": no loss scaling
  std::string gradient_noise;                              // GradientNoise::state(); "": not measured
  int64_t seed = 0, batch = 0, micro_batches = 0;          // from here on: the identity of the run
  int64_t rows = 0;                                        // of the data
  std::vector<std::string> fields;                         // of a row: "tokens i32 [64]"; empty: the run has no data
  std::string kernels;                                     // kernel class, which decides the bits: "cpu avx512"
  std::string graph, data;                                 // digests of both (run_digests.h); "": not known

  /// A JSON object; numbers read back as the same bits. "epoch" is for people.
  std::string json() const;
};

std::vector<std::string> texts_of(std::span<const Field> fields);

/// Validates everything: throws corrupt, with `file`, for a value that is missing, of the wrong type or out of range.
TrainingState parse_training_state(const Json& training, const std::string& file);

/// Throws invalid_argument with both values if the runs differ in seed, batch, micro-batches or data; an unknown value matches anything.
void require_same_run(const TrainingState& here, const TrainingState& there);

}  // namespace st
