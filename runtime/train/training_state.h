// The state of a run apart from its tensors: everything else that its next step depends on, for a checkpoint.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/json.h"
#include "team/run_identity.h"

namespace st {

struct TrainingState : RunIdentity {
  int64_t step = 0;     // attempts, skipped ones too; dropout's random numbers depend on it
  int64_t updates = 0;  // successful steps; learning rate and bias corrections depend on it
  int64_t tokens = 0;
  int64_t items = 0;                                       // taken from the data's stream: its cursor
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last step; NaN: there was none
  double lr = std::numeric_limits<double>::quiet_NaN();    // of the next step, for information; NaN: the host decides it
  std::string loss_scaler;                                 // LossScaler::state(); "": no loss scaling
  std::string gradient_noise;                              // GradientNoise::state(); "": not measured

  /// A JSON object; numbers read back as the same bits. "epoch" is for people.
  std::string json() const;
};

/// Validates everything: throws corrupt, with `file`, for a value that is missing, of the wrong type or out of range.
TrainingState parse_training_state(const Json& training, const std::string& file);

}  // namespace st
