// Parameters that a plan has none of: where an executor finds them (Slot::lent).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "train/model.h"

namespace st {

/// `model`, of which a plan is lent all parameters.
Program lending(const Model& model);
/// Binds those that the executor's plan has kept: place(p) has the p-th of the model's parameters(), or of it this rank's piece.
void lend_parameters(Executor& to, const Model& of, const std::function<const std::byte*(size_t p)>& place);
/// The same, of pieces that lie in `storage` as in the model's.
void lend_pieces(Executor& to, const Model& of, const Storage& storage);
/// The same of a step of one rank of several of a process: masters that the model has for all of them, and the rank's parts of these.
void lend_masters(Executor& to, const Model& of);
/// To the plan of a short micro-batch the 16-bit copies of the step's.
void lend_copies(Executor& to, const Executor& from);

/// plan_inference() of the model, with weights of its own layout; `ranks` not null: of its pieces, which they gather.
Plan plan_predictions(const Model& model, int64_t rows, const std::vector<std::string>& outputs, int threads, const ExchangeQueue* ranks);

}  // namespace st
