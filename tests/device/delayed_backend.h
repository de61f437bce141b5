// A device of its own memory whose kernels run later than they are given: a host backend's kernels on the streams of a StreamEngine.
#pragma once

#include <atomic>
#include <memory>

#include "backend/backend.h"
#include "stream_engine.h"

namespace st {

/// What the backend does wrong, to show that a run finds it.
enum class Planted {
  nothing,
  finish_does_not_wait,  // reports are read, and memory is written, while kernels have not run
  event_does_not_wait,   // pinned memory is written again before it was read
  event_is_early,        // an event's point is before the last work of its stream
  stream_does_not_wait,  // a stream's work runs before an event for which it was to wait
};

struct DeviceBuffers;  // of one backend, in its memory now

/// Calls so far, of all streams too.
struct DeviceCounts {
  std::atomic<int64_t> launches = 0;     // of recordings
  std::atomic<int64_t> host_copies = 0;  // to the host, or to the device without pinned memory
  std::atomic<int64_t> finishes = 0;     // of streams, by the host
};

class DelayedBackend : public Backend {
 public:
  /// `host`: whose kernels it has; `memory`: its source; `records`: its streams can record kernels.
  DelayedBackend(std::unique_ptr<Backend> host, std::shared_ptr<MemorySource> memory, Order order, Planted planted = Planted::nothing,
                 bool records = true);

  std::string_view name() const override { return host_->name(); }
  std::string_view kernel_class() const override { return host_->kernel_class(); }
  const OpTable& kernels() const override { return host_->kernels(); }  // which there are
  const GemmKernels& gemm() const override { return host_->gemm(); }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryRole role) override;
  /// Device memory too, counted as `file`.
  std::unique_ptr<Buffer> allocate_in_file(int64_t bytes, const std::string& folder) override;
  std::unique_ptr<Buffer> allocate_on_host(int64_t bytes) override;
  int64_t host_free_bytes() const override { return host_free_; }
  int64_t allocated_bytes() const override { return host_->allocated_bytes(); }
  int64_t free_bytes() const override { return free_; }
  void to_host(void* host, Address device, int64_t bytes) override;
  void to_device(Address device, const void* host, int64_t bytes) override;
  void copy(Address to, Address from, int64_t bytes) override;
  void zero(Address device, int64_t bytes) override;
  bool holds(Address place, int64_t bytes) const override;
  Address of_host(const void* host) const override;
  /// `handle`: the address of a stream of this backend.
  std::unique_ptr<AdoptedStream> adopt(int64_t handle) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<PinnedMemory> allocate_pinned(int64_t bytes) override;
  std::unique_ptr<Prepared> prepare(Op op, const Call& call) override;
  int64_t launches() const { return counts_.launches; }
  const DeviceCounts& counts() const { return counts_; }
  /// Bytes that are free from now on, until something else is set: what callers are told, not what they get.
  void set_free_bytes(int64_t bytes) { free_ = bytes; }
  void set_host_free_bytes(int64_t bytes) { host_free_ = bytes; }
  void fold(Stream& stream, const RankFold& fold) override;

  /// The n-th allocation from now on, of the device's memory or pinned, fails with out_of_memory and its bytes; 0: none does.
  void fail_allocation(int64_t n) { allocations_left_ = n; }
  /// Whether one has failed since, and how many bytes it was for.
  bool has_failed() const { return allocations_left_ < 0; }
  int64_t failed_bytes() const { return failed_bytes_; }

 private:
  void count_allocation(int64_t bytes, const char* kind);
  std::byte* place_of(Address place) const;

  std::unique_ptr<Backend> host_;
  std::shared_ptr<MemorySource> memory_;
  std::shared_ptr<StreamEngine> engine_;
  const std::shared_ptr<DeviceBuffers> buffers_;
  const Planted planted_;
  const bool records_;
  DeviceCounts counts_;
  int64_t free_ = int64_t{1} << 40, host_free_ = int64_t{1} << 40;
  std::atomic<int64_t> failed_bytes_ = 0;
  std::atomic<int64_t> allocations_left_ = 0;  // until the one that fails; 0: none; below 0: it has failed
};

}  // namespace st
