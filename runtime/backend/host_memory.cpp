#include "backend/host_memory.h"

#include <cstring>
#include <utility>

#include "backend/kernel_side.h"
#include "base/error.h"

namespace st {
namespace {

class HostBuffer : public Buffer {
 public:
  explicit HostBuffer(Memory memory) : memory_(std::move(memory)) {}

  Address data() const override { return address_of(memory_.data()); }
  int64_t size() const override { return memory_.size(); }
  void move_to_file(const std::string& folder) override { memory_.move_to_file(folder); }
  bool is_in_file() const override { return memory_.is_in_file(); }

 private:
  Memory memory_;
};

void copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memmove(to, from, static_cast<size_t>(bytes));
}

}  // namespace

HostBackend::HostBackend(std::shared_ptr<MemorySource> memory) : memory_(memory ? std::move(memory) : std::make_shared<MemorySource>()) {}

std::unique_ptr<Buffer> HostBackend::allocate(int64_t bytes, MemoryRole role) {
  check(bytes >= 0, "allocate: bytes must not be negative, got ", bytes);
  return std::make_unique<HostBuffer>(Memory(bytes, memory_, role));
}

std::unique_ptr<Buffer> HostBackend::allocate_in_file(int64_t bytes, const std::string& folder) {
  check(bytes >= 0, "allocate: bytes must not be negative, got ", bytes);
  return std::make_unique<HostBuffer>(Memory(bytes, memory_, folder));
}

int64_t HostBackend::allocated_bytes() const { return memory_->account().bytes(); }

std::byte* HostBackend::in_host(Address device) const { return pointer_to(device); }

Address HostBackend::of_host(const void* host) const { return address_of(host); }

void HostBackend::to_host(void* host, Address device, int64_t bytes) { copy(host, pointer_to(device), bytes); }

void HostBackend::to_device(Address device, const void* host, int64_t bytes) { copy(pointer_to(device), host, bytes); }

}  // namespace st
