// Where buffers come from: the host's allocator, or the system's pages; and the account of what is out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/host_allocator.h"
#include "base/memory_account.h"
#include "base/os/pages.h"

namespace st {

/// One for all buffers of a context. Safe to call from several threads.
class MemorySource {
 public:
  static constexpr size_t kAlign = 64;

  MemorySource() = default;
  /// Throws invalid_argument when only one of the two functions is there.
  explicit MemorySource(const HostAllocator& host);

  const HostAllocator& host() const { return host_; }
  bool is_hosts() const { return host_.alloc != nullptr; }
  MemoryAccount& account() { return account_; }
  const MemoryAccount& account() const { return account_; }

 private:
  HostAllocator host_;
  MemoryAccount account_;
};

/// One piece of memory, zeroed and 64-byte aligned. It keeps its source alive, so it may outlive the backend or context that asked.
class Memory {
 public:
  Memory() = default;
  /// Counted as `role`. Throws out_of_memory with the size, callback for an answer that is not aligned. 0 bytes are null.
  Memory(int64_t bytes, std::shared_ptr<MemorySource> source, MemoryRole role);
  /// Of a file in `folder` (os::Pages), counted as `file`. Throws io with folder and reason.
  Memory(int64_t bytes, std::shared_ptr<MemorySource> source, const std::string& folder);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;

  /// As of a file from here on, at the same address with the same bytes; nothing where it is one already. Nobody writes it meanwhile.
  /// Throws io as above, unsupported for memory of a host's allocator; then nothing has changed.
  void move_to_file(const std::string& folder);
  bool is_in_file() const { return role_ == MemoryRole::file; }

  std::byte* data() const { return hosts_ != nullptr ? hosts_ : pages_.data(); }
  int64_t size() const { return size_; }  // as asked for: planned and counted bytes are equal, whatever the system rounds up to

 private:
  std::shared_ptr<MemorySource> source_;
  os::Pages pages_;
  std::byte* hosts_ = nullptr;
  int64_t size_ = 0;
  MemoryRole role_ = MemoryRole::other;
};

}  // namespace st
