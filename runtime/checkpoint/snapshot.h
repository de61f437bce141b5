// Tensors as they were at one moment, in memory that is kept from save to save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_source.h"
#include "base/workers.h"
#include "checkpoint/manifest.h"

namespace st {

/// A tensor as it is now, to be copied: its row-major bytes where they lie, or from `copy`, which writes [first, first + out.size()) of
/// them. `first` is a multiple of 64, and so are all sizes but the last: no element is cut. Called from several threads at once, for
/// different ranges, all before the call returns that was given the tensor.
struct SnapshotTensor {
  std::string name;
  TensorKind kind = TensorKind::parameter;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes{};  // empty: copy gives them
  std::function<void(int64_t first, std::span<std::byte> out)> copy;

  int64_t size() const { return shape.elements() * bytes_of(dtype); }
  /// Some of it, from where it lies or by `copy`.
  void copy_to(int64_t first, std::span<std::byte> out) const;
};

class Snapshot {
 public:
  /// `require_memory` (may be empty) is asked before the memory grows, with by how much, and throws where that is too much.
  explicit Snapshot(std::shared_ptr<MemorySource> source, std::function<void(int64_t bytes)> require_memory = {})
      : source_(std::move(source)), require_memory_(std::move(require_memory)) {}

  /// Memory for such tensors, every page of it touched: then take() waits for none. Throws out_of_memory with the size.
  void make_room(std::span<const SnapshotTensor> tensors, Workers& workers);
  /// Copies them, making room where there is none yet. Throws what a `copy` throws.
  void take(std::span<const SnapshotTensor> tensors, Workers& workers);
  /// Of the i-th tensor of the last take().
  std::span<const std::byte> bytes_of(size_t i) const;
  int64_t capacity() const { return memory_.size(); }

 private:
  int64_t lay_out(std::span<const SnapshotTensor> tensors);
  void reserve(int64_t bytes);

  std::shared_ptr<MemorySource> source_;
  std::function<void(int64_t bytes)> require_memory_;
  Memory memory_;
  std::vector<int64_t> offsets_;  // by tensor; each a multiple of 64
  std::vector<int64_t> sizes_;
};

}  // namespace st
