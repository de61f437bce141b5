// A model: a graph and its parameters.
#pragma once

#include <memory>
#include <string>

#include "exec/storage.h"
#include "ir/program.h"
#include "train/context.h"

namespace st {

class Model {
 public:
  /// Parameters are made from (seed, name, element). Throws out_of_memory before anything is allocated, invalid_argument for a bad graph.
  Model(std::shared_ptr<Context> context, Program program, uint64_t seed);

  const Program& program() const { return program_; }
  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  Storage& storage() { return storage_; }

  /// Slots of role parameter, in graph order.
  const std::vector<SlotId>& parameters() const { return parameters_; }
  const Slot& slot(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }
  int64_t elements() const;                             // of all parameters
  SlotId parameter_named(std::string_view name) const;  // throws not_found, names the nearest
  std::byte* data(SlotId parameter) const;              // device memory, row-major

  /// One safetensors file; names and shapes as in the graph.
  void write(const std::string& path) const;
  /// Every parameter must be there with its shape; converts from the floating types. Throws not_found, corrupt, invalid_argument; then no
  /// parameter has changed.
  void read(const std::string& path);

 private:
  std::shared_ptr<Context> context_;
  Program program_;
  Storage storage_;
  std::vector<SlotId> parameters_;
  std::vector<int64_t> offsets_;  // by slot, in the parameter arena
};

}  // namespace st
