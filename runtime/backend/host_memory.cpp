#include "backend/host_memory.h"

#include <cstring>
#include <utility>

#include "backend/kernel_side.h"
#include "base/error.h"
#include "base/os/machine.h"

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

/// A buffer of allocate_on_host(): pinned memory of the host, which streams may copy from and to.
class HomeBuffer : public HostBuffer {
 public:
  explicit HomeBuffer(Memory memory) : HostBuffer(std::move(memory)) {}
  void move_to_file(const std::string& /*folder*/) override { fail(Code::unsupported, "offload: pinned memory cannot be moved to a file"); }
  std::byte* pinned() const override { return pointer_to(data()); }
};

void move_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memmove(to, from, static_cast<size_t>(bytes));
}

class HostEvent : public Event {
 public:
  void wait() override {}
};

class HostPinned : public PinnedMemory {
 public:
  explicit HostPinned(Memory memory) : memory_(std::move(memory)) {}
  std::byte* data() override { return memory_.data(); }

 private:
  Memory memory_;
};

/// Work runs within the call that gives it, so that there is nothing to wait for.
class HostStream : public Stream {
 public:
  void copy_to_device(Address to, const std::byte* pinned, int64_t bytes) override { move_bytes(pointer_to(to), pinned, bytes); }
  void copy_to_host(std::byte* pinned, Address from, int64_t bytes) override { move_bytes(pinned, pointer_to(from), bytes); }
  void copy(Address to, Address from, int64_t bytes) override { move_bytes(pointer_to(to), pointer_to(from), bytes); }
  void record(Event& /*event*/) override {}
  void wait(const Event& /*event*/) override {}
  void finish() override {}
  const Prepared* failed() const override { return nullptr; }
};

class HostKernel : public Prepared {
 public:
  HostKernel(void (*run)(const Call& call), const Call& call) : run_(run), call_(call) {}
  void enqueue(Stream& /*stream*/) override { run_(call_); }

 private:
  void (*run_)(const Call& call);
  const Call& call_;
};

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

std::unique_ptr<Buffer> HostBackend::allocate_on_host(int64_t bytes) {
  check(bytes >= 0, "allocate: bytes must not be negative, got ", bytes);
  return std::make_unique<HomeBuffer>(Memory(bytes, memory_, MemoryRole::host));
}

int64_t HostBackend::host_free_bytes() const { return os::available_memory(); }

int64_t HostBackend::allocated_bytes() const { return memory_->account().bytes(); }

std::byte* HostBackend::in_host(Address device) const { return pointer_to(device); }

Address HostBackend::of_host(const void* host) const { return address_of(host); }

void HostBackend::to_host(void* host, Address device, int64_t bytes) { move_bytes(host, pointer_to(device), bytes); }

void HostBackend::to_device(Address device, const void* host, int64_t bytes) { move_bytes(pointer_to(device), host, bytes); }

void HostBackend::copy(Address to, Address from, int64_t bytes) { move_bytes(pointer_to(to), pointer_to(from), bytes); }

void HostBackend::zero(Address device, int64_t bytes) {
  if (bytes > 0) std::memset(pointer_to(device), 0, static_cast<size_t>(bytes));
}

int64_t HostBackend::free_bytes() const { return os::available_memory(); }

std::unique_ptr<Stream> HostBackend::make_stream() { return std::make_unique<HostStream>(); }

std::unique_ptr<Event> HostBackend::make_event() { return std::make_unique<HostEvent>(); }

std::unique_ptr<PinnedMemory> HostBackend::allocate_pinned(int64_t bytes) {
  return std::make_unique<HostPinned>(Memory(bytes, memory_, MemoryRole::inputs));
}

std::unique_ptr<Prepared> HostBackend::prepare(Op op, const Call& call) {
  return std::make_unique<HostKernel>(kernels()[static_cast<size_t>(op)].run, call);
}

void HostBackend::fold(Stream& /*stream*/, const RankFold& fold) { run_fold(fold); }

}  // namespace st
