// Runs nodes and whole programs directly through a backend's kernels, each on a stream of its own, without plan and executor. Every value
// has its own memory, with a guard after it, filled with garbage before a kernel writes it. Slow and easy to trust.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "ir/program.h"
#include "tensor.h"

namespace st::conformance {

/// Memory of one operand on the backend.
class Block {
 public:
  Block(Backend& backend, const Type& type, int64_t displaced = 0);  // filled with garbage
  Block(Backend& backend, const Tensor& value, int64_t displaced = 0);

  Operand operand() const;
  Tensor read() const;
  void write(const Tensor& value);
  bool guard_holds() const;

 private:
  Address data() const { return buffer_->data() + displaced_; }

  Backend* backend_;
  Type type_;
  int64_t displaced_;
  std::unique_ptr<Buffer> buffer_;
};

using Blocks = std::vector<std::shared_ptr<Block>>;

/// Threads shared by all runs with this number of threads: starting them takes longer than most cases. One caller at a time.
Workers& workers_of(int threads);

/// Calls the kernel of `node` with exactly the workspace that it requested. Throws internal when the backend has no kernel for it, or when
/// it wrote past an output or its workspace, or changed an input that is not also an output.
void run_node(Backend& backend, Workers& workers, const Node& node, const Blocks& in, const Blocks& out, const Blocks& slots = {});

/// A program's slots and sections, for one micro-batch. load and reshape are views of memory, as in the executor.
class Interpreter {
 public:
  /// Borrows both. Slots start at zero.
  Interpreter(Backend& backend, const Program& program, int threads = 2);

  void set(SlotId slot, const Tensor& value);
  void set(std::string_view slot, const Tensor& value);
  Tensor get(std::string_view slot) const;

  /// Runs all nodes of a phase in order, as the first micro-batch of a step.
  void run(Phase phase);
  Tensor value(Value v) const;  // from the section run last

 private:
  std::shared_ptr<Block>& slot_block(SlotId slot) { return slots_[static_cast<size_t>(slot)]; }
  std::shared_ptr<Block> slot_named(std::string_view name) const;
  void run(const Node& node, Blocks& out);

  Backend& backend_;
  const Program& program_;
  Workers& workers_;
  Blocks slots_;
  std::vector<Blocks> values_;
};

}  // namespace st::conformance
