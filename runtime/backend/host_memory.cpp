#include "backend/host_memory.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/os.h"

namespace st {
namespace {

class HostBuffer : public Buffer {
 public:
  HostBuffer(int64_t bytes, std::shared_ptr<std::atomic<int64_t>> allocated)
      : pages_(bytes > 0 ? os::Pages(bytes) : os::Pages()), size_(bytes), allocated_(std::move(allocated)) {
    *allocated_ += size_;
  }
  ~HostBuffer() override { *allocated_ -= size_; }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* data() const override { return pages_.data(); }
  int64_t size() const override { return size_; }

 private:
  os::Pages pages_;
  int64_t size_;  // as asked for: planned and counted bytes are equal, whatever the OS rounds up to
  std::shared_ptr<std::atomic<int64_t>> allocated_;
};

void copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memmove(to, from, static_cast<size_t>(bytes));
}

}  // namespace

HostBackend::HostBackend() : allocated_(std::make_shared<std::atomic<int64_t>>(0)) {}

std::unique_ptr<Buffer> HostBackend::allocate(int64_t bytes) {
  check(bytes >= 0, "allocate: bytes must not be negative, got ", bytes);
  return std::make_unique<HostBuffer>(bytes, allocated_);
}

int64_t HostBackend::allocated_bytes() const { return *allocated_; }

void HostBackend::to_host(void* host, const std::byte* device, int64_t bytes) { copy(host, device, bytes); }

void HostBackend::to_device(std::byte* device, const void* host, int64_t bytes) { copy(device, host, bytes); }

}  // namespace st
