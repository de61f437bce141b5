// Runs nodes and whole programs straight through a backend's table of kernels, without plan and executor: every value has memory of its
// own with a guard behind it, filled with rubbish before a kernel writes it. Slow, and easy to trust.
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
  Block(Backend& backend, const Type& type, int64_t displaced = 0);  // rubbish
  Block(Backend& backend, const Tensor& value, int64_t displaced = 0);

  Operand operand() const;
  Tensor read() const;
  void write(const Tensor& value);
  bool guard_holds() const;

 private:
  std::byte* data() const { return buffer_->data() + displaced_; }

  Backend* backend_;
  Type type_;
  int64_t displaced_;
  std::unique_ptr<Buffer> buffer_;
};

using Blocks = std::vector<std::shared_ptr<Block>>;

/// Threads that all runs of so many share: starting them takes longer than most cases. One caller at a time.
Workers& workers_of(int threads);

/// Calls the kernel of `node` with workspace as large as it asked for and not a byte more. Throws internal when the backend has no kernel
/// for it, when it wrote past an output or its workspace, or changed an input that is not also an output.
void run_node(Backend& backend, Workers& workers, const Node& node, const Blocks& in, const Blocks& out, const Blocks& slots = {});

/// A program's slots and sections, one micro-batch. load and reshape are views of memory, as they are in the executor.
class Interpreter {
 public:
  /// Borrows both. Slots start as zeros.
  Interpreter(Backend& backend, const Program& program, int threads = 2);

  void set(SlotId slot, const Tensor& value);
  void set(std::string_view slot, const Tensor& value);
  Tensor get(std::string_view slot) const;

  /// Runs all nodes of that phase in order, as the first of the step's micro-batches.
  void run(Phase phase);
  Tensor value(Value v) const;  // of the section run last

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
