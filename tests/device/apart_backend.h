// A device of its own memory, for tests: the cpu's kernels on memory whose addresses the host cannot follow.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace st {

/// Allocates as the cpu backend does and adds kAway to each address, so that a host which makes a pointer of one is killed by SIGSEGV.
/// Kernels run at once and take kAway off again. Bits are the cpu's.
class ApartBackend : public Backend {
 public:
  explicit ApartBackend(std::shared_ptr<MemorySource> memory);

  std::string_view name() const override { return cpu_->name(); }
  std::string_view kernel_class() const override { return cpu_->kernel_class(); }
  const OpTable& kernels() const override;
  const GemmKernels& gemm() const override { return cpu_->gemm(); }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryRole role) override;
  std::unique_ptr<Buffer> allocate_in_file(int64_t bytes, const std::string& folder) override;
  std::unique_ptr<Buffer> allocate_on_host(int64_t bytes) override { return cpu_->allocate_on_host(bytes); }
  int64_t host_free_bytes() const override { return cpu_->host_free_bytes(); }
  int64_t allocated_bytes() const override { return cpu_->allocated_bytes(); }
  int64_t free_bytes() const override { return cpu_->free_bytes(); }
  void to_host(void* host, Address device, int64_t bytes) override;
  void to_device(Address device, const void* host, int64_t bytes) override;
  void copy(Address to, Address from, int64_t bytes) override;
  void zero(Address device, int64_t bytes) override;
  Address of_host(const void* host) const override { return cpu_->of_host(host); }
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event() override { return cpu_->make_event(); }
  std::unique_ptr<PinnedMemory> allocate_pinned(int64_t bytes) override { return cpu_->allocate_pinned(bytes); }
  std::unique_ptr<Prepared> prepare(Op op, const Call& call) override;
  void fold(Stream& stream, const RankFold& fold) override;

 private:
  std::unique_ptr<Backend> cpu_;
};

}  // namespace st
