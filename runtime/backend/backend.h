// A backend: a device's memory and a table of kernels, one per op. Code above it does not know which backend it uses.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backend/address.h"
#include "backend/device_group.h"
#include "backend/device_stream.h"
#include "backend/kernel_call.h"
#include "backend/rank_fold.h"
#include "base/memory_source.h"
#include "base/workers.h"
#include "gemm/gemm_kernels.h"
#include "ir/graph.h"

namespace st {

/// Memory of one arena. Freed by its destructor; counted by its backend.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual Address data() const = 0;
  virtual int64_t size() const = 0;
  /// Moves it to an unnamed file in `folder`, at the same address with the same contents; does nothing if it is in one. No thread may write
  /// it meanwhile. Throws io with folder and reason, or unsupported; nothing changes on error.
  virtual void move_to_file(const std::string& folder) = 0;
  virtual bool is_in_file() const = 0;
  /// The place of allocate_on_host() as the host sees it, which streams copy from and to; null: any other memory, or no bytes.
  virtual std::byte* pinned() const { return nullptr; }
};

/// Where memory is, as DLPack names it: DLDeviceType and the number of the device.
struct MemoryPlace {
  static constexpr int32_t kHost = 1, kCuda = 2;  // kDLCPU, kDLCUDA
  int32_t type = 0;                               // 0: no other library can use it
  int32_t index = 0;
  bool operator==(const MemoryPlace&) const = default;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;          // "cpu", "reference"
  virtual std::string_view kernel_class() const = 0;  // what the bits depend on: "avx512"; part of the job hash
  virtual bool has_kernel(Op op) const { return kernels()[static_cast<size_t>(op)].run != nullptr; }
  /// Functions of the host, of backends whose memory it can read. Others throw unsupported.
  virtual const OpTable& kernels() const = 0;
  virtual const GemmKernels& gemm() const = 0;  // matrix products alone, the same as in the ops
  /// A library's ways to compute a product, by the names that the attribute `library` takes, its best guess first; never freed. A problem
  /// may have only the first of them: a product by another one is unsupported. None: there is no choice.
  virtual std::span<const char* const> product_algorithms() const { return {}; }
  /// Zeroed, 64-byte aligned, counted as `role`. Throws out_of_memory with the requested and the available size.
  virtual std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryRole role) = 0;
  /// The same in an unnamed file in `folder`, counted as `file`. Throws io with folder, required and free size.
  virtual std::unique_ptr<Buffer> allocate_in_file(int64_t bytes, const std::string& folder) = 0;
  /// Pinned memory of the host in place of a device's, zeroed, counted as `host`. to_host(), to_device(), copy() and zero() take its
  /// addresses, kernels do not; holds() is false. It cannot be moved to a file. Throws out_of_memory with the requested and available size.
  virtual std::unique_ptr<Buffer> allocate_on_host(int64_t bytes) = 0;
  /// Bytes that allocate_on_host() can still take.
  virtual int64_t host_free_bytes() const = 0;
  virtual int64_t allocated_bytes() const = 0;  // currently, in all buffers in memory
  /// Bytes of the device's memory that buffers can still take. Host memory: what the machine has left (os::available_memory()), of which
  /// pages that are allocated and not touched yet are a part.
  virtual int64_t free_bytes() const = 0;
  /// Copies now, in no order with the work of streams: their owner has finished them.
  virtual void to_host(void* host, Address device, int64_t bytes) = 0;
  virtual void to_device(Address device, const void* host, int64_t bytes) = 0;
  /// Within its memory, likewise. The ranges do not overlap.
  virtual void copy(Address to, Address from, int64_t bytes) = 0;
  virtual void zero(Address device, int64_t bytes) = 0;
  /// Bytes to copy at a time where `in_host` suit a host's cache: a device takes microseconds for any transfer.
  int64_t transfer_bytes(int64_t in_host) const { return is_host_memory() ? in_host : int64_t{4} << 20; }
  /// Whether buffers are host memory, which the host may read and write in place.
  virtual bool is_host_memory() const { return false; }
  /// The place as the host sees it; null if buffers are not host memory.
  virtual std::byte* in_host(Address /*device*/) const { return nullptr; }
  /// Whether these bytes are in this device's memory, as far as it can tell: host backends take any address for theirs.
  virtual bool holds(Address /*place*/, int64_t /*bytes*/) const { return true; }
  /// The place of its buffers.
  virtual MemoryPlace memory_place() const { return {is_host_memory() ? MemoryPlace::kHost : 0, 0}; }
  /// A text that no other device of this machine has, the same in all processes: "0000:01:00.0". Empty: processes share no device.
  virtual std::string_view bus_id() const { return ""; }
  /// Whether these bytes are memory of this device, in its own buffers or in another library's.
  virtual bool reaches(Address place, int64_t bytes) const { return holds(place, bytes); }
  /// A stream of the host's by its handle; of CUDA a cudaStream_t, also 1 and 2, the default streams. Throws unsupported on a device
  /// without streams that a host can have, invalid_argument for a stream of another device.
  virtual std::unique_ptr<AdoptedStream> adopt(int64_t handle);
  /// The place of host memory as kernels see it. Throws unsupported if they cannot read it.
  virtual Address of_host(const void* host) const = 0;

  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Counted as `inputs`. Throws out_of_memory.
  virtual std::unique_ptr<PinnedMemory> allocate_pinned(int64_t bytes) = 0;
  /// The kernel of an op that the backend has, for these operands. Borrows the call and what it refers to; Prepared::enqueue() reads their
  /// addresses, which may be null before. A device may load what the kernel needs. Throws unsupported for a call that it cannot compute.
  virtual std::unique_ptr<Prepared> prepare(Op op, const Call& call) = 0;
  /// Gives the sum of ranks' terms to a stream. Takes what `fold` refers to within the call; allocates nothing.
  virtual void fold(Stream& stream, const RankFold& fold) = 0;
  /// The network of this device and those of other ranks; null: there is no kind of it. Throws unavailable, with the reason and the way
  /// out, where it is missing.
  virtual std::unique_ptr<DeviceNetwork> open_network() { return nullptr; }
};

/// `memory`: allocates and counts the buffers; null: the system's pages, counted by the backend.
std::unique_ptr<Backend> make_reference_backend(std::shared_ptr<MemorySource> memory = nullptr);
std::unique_ptr<Backend> make_cpu_backend(std::shared_ptr<MemorySource> memory = nullptr);

}  // namespace st
