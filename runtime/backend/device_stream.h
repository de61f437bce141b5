// Queues of work on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/address.h"

namespace st {

/// A point in the work of a stream, until it is recorded again.
class Event {
 public:
  virtual ~Event() = default;
  /// The host waits for the work before the point; returns at once if it was never recorded. Stream::finish() tells what failed. Throws
  /// unavailable only where the point is within a recording.
  virtual void wait() = 0;
  /// Whether the work has run, for a host that polls. Waits for it, and returns true, where a device cannot tell.
  virtual bool has_passed() {
    wait();
    return true;
  }
};

/// Host memory from and to which a device copies while the host goes on.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
  virtual std::byte* data() = 0;
};

/// Kernels that were recorded once, to be given again as one.
class Recording {
 public:
  /// All streams have finished what launch() gave them.
  virtual ~Recording() = default;
  /// Gives the kernels to a stream, any number of times: with the operands, attributes and workspace that they had when recorded.
  virtual void launch(class Stream& stream) = 0;
};

/// A queue of work, which runs in the order in which it was given: some time between the call that gives it and the return of finish(), or
/// within the call on a backend in host memory. Only events order the work of two streams. One thread at a time may use a stream.
class Stream {
 public:
  /// Waits for its work.
  virtual ~Stream() = default;
  /// Copies `bytes` of pinned memory, which must not change before the copy has run.
  virtual void copy_to_device(Address to, const std::byte* pinned, int64_t bytes) = 0;
  virtual void copy_to_host(std::byte* pinned, Address from, int64_t bytes) = 0;
  /// Within the device's memory. The ranges do not overlap.
  virtual void copy(Address to, Address from, int64_t bytes) = 0;
  /// The event's point is after the work given so far.
  virtual void record(Event& event) = 0;
  /// Work given from now on runs after the event's point, as it is at this call.
  virtual void wait(const Event& event) = 0;
  /// The host waits for all work. Throws the error of the first kernel that has failed since the last finish(); whether the kernels behind
  /// it have run is unspecified. failed() names it until the next call.
  virtual void finish() = 0;
  /// Call before memory that updates may read is left half written, as by an aborted exchange. Updates that this stream has not begun write
  /// no slot from then on. From any thread; waits for no work of the stream. finish() does not report it. No-op on a backend whose ranks no
  /// network connects.
  virtual void halt_updates() noexcept {}
  /// The call whose kernel failed (Prepared); null: none.
  virtual const class Prepared* failed() const = 0;

  /// Whether the two calls below may be made.
  virtual bool can_record() const { return false; }
  /// Until end_recording() kernels given to this stream are recorded instead; nothing else may be given to it.
  virtual void begin_recording() {}
  virtual std::unique_ptr<Recording> end_recording() { return nullptr; }
  /// In the place of end_recording(), after an error: the stream is as before the recording.
  virtual void abandon_recording() noexcept {}
};

/// A stream that the host has made with a library of its own, on the same device. Whoever made it ends it, after this object.
class AdoptedStream {
 public:
  virtual ~AdoptedStream() = default;
  /// As in Stream.
  virtual void record(Event& event) = 0;
  virtual void wait(const Event& event) = 0;
};

/// A kernel and its call, with all that can be made before the step: descriptors, the choice of an algorithm.
class Prepared {
 public:
  virtual ~Prepared() = default;
  /// Gives it to a stream, any number of times. Allocates nothing. On a backend in host memory the kernel runs now, and may throw.
  virtual void enqueue(Stream& stream) = 0;
};

}  // namespace st
