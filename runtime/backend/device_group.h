// A network moves memory between the devices of several ranks without the host. Each rank has a device of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "backend/address.h"
#include "base/dtype.h"

namespace st {

/// One rank's end of a group. One thread at a time uses it; no call waits for another rank, so what is begun is polled by is_ready().
/// Errors are unavailable, with the words of the library that moves the memory; abort() is all that may be called after one.
class DeviceGroup {
 public:
  /// Ends it. No stream has work of it left, or abort() was called.
  virtual ~DeviceGroup() = default;
  virtual std::string_view name() const = 0;  // "nccl"

  /// Contiguous memory of this rank's device, of which `rank` has as many bytes.
  struct Part {
    int rank = 0;
    Address data;
    int64_t bytes = 0;
  };
  /// Gives to `stream`, at once: sends and receives, those between two ranks in the same order on both. The memory that is sent may be
  /// written, and what was received read, by work given to the stream after this.
  virtual void exchange(class Stream& stream, std::span<const Part> sends, std::span<const Part> receives) = 0;

  /// A collective of all ranks that the network runs by itself: it adds in an order of its own, in the type of the elements.
  struct Native {
    enum class Kind : uint8_t { all_reduce, reduce_scatter, all_gather, reduce, broadcast };
    Kind kind = Kind::all_reduce;
    Address from, to;      // In place: `to` is `from`, or this rank's part of it; otherwise they do not overlap. Only the root of a reduce
                           // writes `to`, only that of a broadcast reads `from`.
    int64_t elements = 0;  // reduce_scatter, all_gather: of one rank's part
    DType dtype = DType::f32;
    int root = 0;  // reduce, broadcast
  };
  /// As exchange(): all ranks give the same calls in the same order.
  virtual void run_native(Stream& stream, std::span<const Native> calls) = 0;

  /// Whether the group has been connected, and whether what was given last is in its stream: nothing else may be given before. Throws what
  /// has failed since the last call, in what is under way too.
  virtual bool is_ready() = 0;
  /// Ends what is under way, whose results are undefined then, and the group. Streams can be finished after it.
  virtual void abort() noexcept = 0;
};

/// How a device joins groups. Plug-ins allocate by themselves, so nothing is returned that the caller would free.
class DeviceNetwork {
 public:
  virtual ~DeviceNetwork() = default;
  virtual std::string_view name() const = 0;     // "nccl"
  virtual std::string_view version() const = 0;  // "2.28.9"
  /// Names a new group: one rank makes id_bytes(), with which all ranks join.
  virtual int64_t id_bytes() const = 0;
  virtual void make_id(std::span<std::byte> id) = 0;
  /// Begins to join. The group keeps what it needs: backend and network may end before it.
  virtual std::unique_ptr<DeviceGroup> join(std::span<const std::byte> id, int rank, int size) = 0;
};

}  // namespace st
