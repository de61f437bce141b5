// Memory, copies and streams of backends whose device is the host; the reference and cpu backends share it.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace st {

/// Buffers are zeroed memory of the source, freed by their destructors. A buffer may outlive its backend: it keeps the source, which counts
/// it. Safe to call from several threads.
class HostBackend : public Backend {
 public:
  /// `memory` null: the system's pages.
  explicit HostBackend(std::shared_ptr<MemorySource> memory);
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryRole role) override;
  std::unique_ptr<Buffer> allocate_in_file(int64_t bytes, const std::string& folder) override;
  std::unique_ptr<Buffer> allocate_on_host(int64_t bytes) override;
  int64_t host_free_bytes() const override;
  int64_t allocated_bytes() const override;
  bool is_host_memory() const override { return true; }
  int64_t free_bytes() const override;
  std::byte* in_host(Address device) const override;
  Address of_host(const void* host) const override;
  void to_host(void* host, Address device, int64_t bytes) override;
  void to_device(Address device, const void* host, int64_t bytes) override;
  void copy(Address to, Address from, int64_t bytes) override;
  void zero(Address device, int64_t bytes) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<PinnedMemory> allocate_pinned(int64_t bytes) override;
  std::unique_ptr<Prepared> prepare(Op op, const Call& call) override;
  void fold(Stream& stream, const RankFold& fold) override;

 private:
  std::shared_ptr<MemorySource> memory_;
};

}  // namespace st
