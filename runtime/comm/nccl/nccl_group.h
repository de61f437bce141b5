// One rank of an NCCL communicator that never waits for the others: what it begins is polled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/dtype.h"
#include "comm/nccl/nccl_library.h"

namespace st::nccl {

/// Used by one thread at a time, while the rank's device is the current one. Errors are unavailable, with NCCL's words; only abort() may
/// follow one.
class Group {
 public:
  static constexpr int64_t kIdBytes = NCCL_UNIQUE_ID_BYTES;
  /// A new ncclUniqueId.
  static void make_id(const Library& library, std::span<std::byte> id);
  /// Begins to connect. `id`: made by one rank for all.
  Group(std::shared_ptr<const Library> library, std::span<const std::byte> id, int rank, int size);
  ~Group() { abort(); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // The calls between begin() and end() are one operation of the stream, on device memory. Sends and receives: more than 0 bytes. NCCL's
  // own collectives: in the same order on all ranks; NCCL chooses the order of its sums. In place where `to` is `from`, or its part of the
  // whole. reduce_scatter, all_gather: `elements` of one rank's part.
  void begin();
  void send(int to, const void* data, size_t bytes, cudaStream_t stream);
  void receive(int from, void* data, size_t bytes, cudaStream_t stream);
  void all_reduce(const void* from, void* to, size_t elements, DType dtype, cudaStream_t stream);
  void reduce_scatter(const void* from, void* to, size_t elements, DType dtype, cudaStream_t stream);
  void all_gather(const void* from, void* to, size_t elements, DType dtype, cudaStream_t stream);
  void reduce(const void* from, void* to, size_t elements, DType dtype, int root, cudaStream_t stream);
  void broadcast(const void* from, void* to, size_t elements, DType dtype, int root, cudaStream_t stream);
  void end();
  /// Closes what begin() has opened, after a send or receive that threw: NCCL counts open groups by thread. Only abort() may follow.
  void close() noexcept { library_->ncclGroupEnd(); }
  /// Whether what was begun, the connection or the last operation, has been given to its stream. Throws what has failed meanwhile, also in
  /// operations that the device runs.
  bool is_ready();
  /// Ends what is under way, and the communicator. Waits for no other rank.
  void abort() noexcept;

 private:
  ncclComm_t usable() const;

  const std::shared_ptr<const Library> library_;
  ncclComm_t comm_ = nullptr;  // null: aborted
};

}  // namespace st::nccl
