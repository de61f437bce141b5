// Copies between a model's whole parameters and what ranks that are threads have of them, where they have copies (threads_have_copies).
#pragma once

#include "exec/executor.h"
#include "model/model.h"

namespace st {

/// To a rank's parameters, from the model. The caller holds the model's gate.
void take_parameters(const Executor& rank, const Model& from);
/// From a rank's parameters to the model, those for which this rank answers; the first rank answers for a range that several have.
void give_parameters(const Executor& rank, const Model& to);

}  // namespace st
