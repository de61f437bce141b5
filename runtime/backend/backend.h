// A backend: memory of a device and a table of kernels, one per op. Nothing above asks which backend is there.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/memory_source.h"
#include "base/workers.h"
#include "gemm/gemm_kernels.h"
#include "ir/graph.h"

namespace st {

/// An operand of a kernel: contiguous, row-major, 64-byte aligned unless it is the host's own memory. Borrowed during the call.
struct Operand {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t elements() const { return shape.elements(); }
};

/// What a kernel is given. Outputs do not overlap inputs, except that an elementwise op's out may be one of its inputs exactly.
struct Call {
  std::span<const Operand> in, out, reads, writes;  // reads, writes: slots (optimizer ops have the same slots in both)
  const Attrs* attrs = nullptr;
  std::span<std::byte> workspace;  // as many bytes as the row's workspace() asked for, 64-byte aligned, not cleared
  Workers* workers = nullptr;
};

/// One op on one backend.
struct Kernel {
  void (*run)(const Call& call) = nullptr;  // allocates nothing; may throw Error for bad data (a token outside the vocabulary)
  int64_t (*workspace)(std::span<const Type> in, std::span<const Type> out, const Attrs& attrs, int threads) = nullptr;  // null: 0
  /// fused_linear: what a packed weight takes. Null: reading it as it lies is as fast.
  int64_t (*packed_bytes)(std::span<const Type> in, const Attrs& attrs) = nullptr;
  /// The matrix product behind it, for ops that take `tiles`; null: there is none.
  GemmProblem (*product)(std::span<const Type> in, std::span<const Type> out, const Attrs& attrs) = nullptr;
};

using OpTable = std::array<Kernel, kOps>;

/// Memory of one arena. Freed by its destructor, counted by its backend.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::byte* data() const = 0;
  virtual int64_t size() const = 0;
  /// From here on a file in `folder` has it, at the same address with the same bytes; nothing where one has it already. Nobody writes it
  /// meanwhile. Throws io with folder and reason, unsupported where it cannot be; then nothing has changed.
  virtual void move_to_file(const std::string& folder) = 0;
  virtual bool is_in_file() const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;          // "cpu", "reference"
  virtual std::string_view kernel_class() const = 0;  // what the bits depend on: "avx512"; part of the job hash
  virtual const OpTable& kernels() const = 0;
  virtual const GemmKernels& gemm() const = 0;  // products by themselves, as the ops have them
  /// Zeroed, 64-byte aligned, counted as `role`. Throws out_of_memory with the size and what there is.
  virtual std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryRole role) = 0;
  /// The same in a file without a name in `folder`, counted as `file`. Throws io with the folder, need and what is free there.
  virtual std::unique_ptr<Buffer> allocate_in_file(int64_t bytes, const std::string& folder) = 0;
  virtual int64_t allocated_bytes() const = 0;  // now, over all buffers in memory
  /// Buffers are memory of the host's, which may be written where they lie.
  virtual bool is_host_memory() const { return false; }
  virtual void to_host(void* host, const std::byte* device, int64_t bytes) = 0;
  virtual void to_device(std::byte* device, const void* host, int64_t bytes) = 0;
};

/// `memory`: where buffers come from and are counted; null: the system's pages, counted by the backend.
std::unique_ptr<Backend> make_reference_backend(std::shared_ptr<MemorySource> memory = nullptr);
std::unique_ptr<Backend> make_cpu_backend(std::shared_ptr<MemorySource> memory = nullptr);

}  // namespace st
