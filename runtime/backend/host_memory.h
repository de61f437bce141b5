// Memory and copies of a backend whose device is the host itself; what the reference and cpu backends share.
#pragma once

#include <atomic>
#include <memory>

#include "backend/backend.h"

namespace st {

/// Buffers are anonymous pages of the OS: zero, page-aligned, given back by the destructor. A buffer may outlive its backend: the count
/// they share lives as long as either. Safe to call from several threads.
class HostBackend : public Backend {
 public:
  HostBackend();
  std::unique_ptr<Buffer> allocate(int64_t bytes) override;
  int64_t allocated_bytes() const override;
  void to_host(void* host, const std::byte* device, int64_t bytes) override;
  void to_device(std::byte* device, const void* host, int64_t bytes) override;

 private:
  std::shared_ptr<std::atomic<int64_t>> allocated_;
};

}  // namespace st
