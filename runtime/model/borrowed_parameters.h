// Borrowed parameters: plans without parameters of their own, and how their executors find them (Slot::borrowed).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "model/model.h"

namespace st {

/// The model's program, for a plan that borrows all parameters.
Program borrowing(const Model& model);
/// Binds the parameters that the executor's plan uses: place(p) is the address of the p-th of the model's parameters(), or of this rank's
/// shard of it.
void bind_parameters(Executor& to, const Model& of, const std::function<Address(size_t p)>& place);
/// The same for shards in `storage`, which has the layout of the model's storage.
void bind_shards(Executor& to, const Model& of, const Storage& storage);
/// The same for a step of one of several ranks in this process: binds the masters that the model holds for all of them, and the rank's
/// shards of these.
void bind_masters(Executor& to, const Model& of);
/// Binds the 16-bit copies of a step's executor to the executor of its short micro-batch.
void bind_copies(Executor& to, const Executor& from);

/// plan_inference() of the model, with borrowed weights in its layout. `ranks` not null: the weights are shards, which the ranks gather.
/// `on_host`: they are in the memory of the device's host.
Plan plan_predictions(const Model& model, int64_t rows, const std::vector<std::string>& outputs, int threads, const ExchangeQueue* ranks,
                      bool on_host);

}  // namespace st
