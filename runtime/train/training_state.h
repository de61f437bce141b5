// Where a run stands, beside its tensors: all else that its next step depends on, as a checkpoint keeps it.
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
  int64_t step = 0;     // attempts, skipped ones too: the dropout's random numbers go by it
  int64_t updates = 0;  // successful ones: learning rate and bias corrections go by it
  int64_t tokens = 0;
  int64_t items = 0;                                       // taken of the data's stream: its cursor
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last step; NaN: there was none
  double lr = std::numeric_limits<double>::quiet_NaN();    // of the next step, to be looked at; NaN: the host's to say
  std::string loss_scaler;                                 // LossScaler::state(); "": the recipe scales no loss
  std::string gradient_noise;                              // GradientNoise::state(); "": nobody asks for it
  int64_t seed = 0, batch = 0, micro_batches = 0;          // from here on: what the run is of
  int64_t rows = 0;                                        // of the data
  std::vector<std::string> fields;                         // of a row: "tokens i32 [64]"; none: the run has no data
  std::string kernels;                                     // what the bits depend on: "cpu avx512"
  std::string graph, data;                                 // digests of both (run_digests.h); "": not known

  /// A JSON object; numbers read back as the same bits. "epoch" is there for people.
  std::string json() const;
};

std::vector<std::string> texts_of(std::span<const Field> fields);

/// Trusts nothing: throws corrupt, with `file`, for what is missing, of another type or out of range.
TrainingState parse_training_state(const Json& training, const std::string& file);

/// Throws invalid_argument with both values where the runs differ in seed, batch, micro-batches or data; what is not known of one differs
/// in nothing.
void require_same_run(const TrainingState& here, const TrainingState& there);

}  // namespace st
