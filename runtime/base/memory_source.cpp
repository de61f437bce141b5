#include "base/memory_source.h"

#include <cstring>
#include <utility>

#include "base/error.h"

namespace st {
namespace {

std::byte* take_from(const HostAllocator& host, int64_t bytes) {
  try {
    void* memory = host.take(static_cast<size_t>(bytes), MemorySource::kAlign);
    return static_cast<std::byte*>(std::memset(memory, 0, static_cast<size_t>(bytes)));
  } catch (const HostMemoryError& refusal) {
    fail(refusal.code(), refusal.what());  // an Error, to which callers add what the buffer is for
  }
}

}  // namespace

MemorySource::MemorySource(const HostAllocator& host) : host_(host) {
  check((host.alloc == nullptr) == (host.free == nullptr), "memory: ", host.alloc == nullptr ? "free without alloc" : "alloc without free",
        "; set both or neither");
}

Memory::Memory(int64_t bytes, std::shared_ptr<MemorySource> source, MemoryRole role)
    : source_(std::move(source)), size_(bytes), role_(role) {
  check(bytes >= 0, "memory: bytes must be 0 or more, got ", bytes);
  if (bytes > 0 && source_ && source_->is_hosts())
    hosts_ = take_from(source_->host(), bytes);
  else
    pages_ = os::Pages(bytes);
  if (source_) source_->account().add(role_, size_);
}

Memory::Memory(int64_t bytes, std::shared_ptr<MemorySource> source, const std::string& folder)
    : source_(std::move(source)), pages_(bytes, folder), size_(bytes), role_(MemoryRole::file) {
  if (source_) source_->account().add(role_, size_);
}

void Memory::move_to_file(const std::string& folder) {
  if (role_ == MemoryRole::file || size_ == 0) return;
  require(hosts_ == nullptr, Code::unsupported,
          "offload: this context uses the host's alloc, whose memory cannot be moved to "
          "a file; create the context without alloc, or offload the optimizer only");
  pages_.move_to_file(folder);
  if (source_) source_->account().add(role_, -size_);
  role_ = MemoryRole::file;
  if (source_) source_->account().add(role_, size_);
}

Memory::~Memory() {
  if (hosts_ != nullptr) source_->host().give_back(hosts_);
  if (source_) source_->account().add(role_, -size_);
}

Memory::Memory(Memory&& other) noexcept
    : source_(std::move(other.source_)),
      pages_(std::move(other.pages_)),
      hosts_(std::exchange(other.hosts_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      role_(other.role_) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(source_, other.source_);
  std::swap(pages_, other.pages_);
  std::swap(hosts_, other.hosts_);
  std::swap(size_, other.size_);
  std::swap(role_, other.role_);
  return *this;
}

}  // namespace st
