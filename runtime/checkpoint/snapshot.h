// Copies of tensors as of one moment, in memory that is reused from save to save.
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

/// A tensor to copy: its row-major bytes, borrowed, or `copy`, which writes [first, first + out.size()) of them to `out`. `first` and all
/// sizes except the last are multiples of 64, so no element is split. Several threads call `copy` at once, for different ranges, all before
/// the call that takes the tensor returns.
struct SnapshotTensor {
  std::string name;
  TensorKind kind = TensorKind::parameter;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes{};  // empty: use copy
  std::function<void(int64_t first, std::span<std::byte> out)> copy;

  int64_t size() const { return shape.elements() * bytes_of(dtype); }
  /// Copies a range, from `bytes` or by `copy`.
  void copy_to(int64_t first, std::span<std::byte> out) const;
};

class Snapshot {
 public:
  /// `require_memory` (may be empty) is called with the growth in bytes before the memory grows; it throws to refuse.
  explicit Snapshot(std::shared_ptr<MemorySource> source, std::function<void(int64_t bytes)> require_memory = {})
      : source_(std::move(source)), require_memory_(std::move(require_memory)) {}

  /// Allocates memory for such tensors and touches every page, so that take() need not. Throws out_of_memory with the size.
  void make_room(std::span<const SnapshotTensor> tensors, Workers& workers);
  /// Copies the tensors; allocates memory if there is not enough. Throws what a `copy` throws.
  void take(std::span<const SnapshotTensor> tensors, Workers& workers);
  /// The bytes of the i-th tensor of the last take().
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
