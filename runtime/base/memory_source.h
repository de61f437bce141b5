// Where buffers come from, the host's allocator or the system's pages, and the account of allocated bytes.
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
  /// Throws invalid_argument when only one of the two functions is given.
  explicit MemorySource(const HostAllocator& host);

  const HostAllocator& host() const { return host_; }
  bool is_hosts() const { return host_.alloc != nullptr; }
  MemoryAccount& account() { return account_; }
  const MemoryAccount& account() const { return account_; }

 private:
  HostAllocator host_;
  MemoryAccount account_;
};

/// One buffer, zeroed and 64-byte aligned. It keeps its source alive, so it may outlive the backend or context that allocated it.
class Memory {
 public:
  Memory() = default;
  /// Counted as `role`. Throws out_of_memory with the size; callback when the host's address is not aligned. 0 bytes give null.
  Memory(int64_t bytes, std::shared_ptr<MemorySource> source, MemoryRole role);
  /// Backed by a file in `folder` (os::Pages), counted as `file`. Throws io with folder and reason.
  Memory(int64_t bytes, std::shared_ptr<MemorySource> source, const std::string& folder);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;

  /// Makes it file-backed, at the same address with the same contents; does nothing if it is already. No thread may write it meanwhile.
  /// Throws io as above, unsupported for memory of the host's allocator; nothing changes on error.
  void move_to_file(const std::string& folder);
  bool is_in_file() const { return role_ == MemoryRole::file; }

  std::byte* data() const { return hosts_ != nullptr ? hosts_ : pages_.data(); }
  int64_t size() const { return size_; }  // as requested, before rounding: planned and counted bytes are equal

 private:
  std::shared_ptr<MemorySource> source_;
  os::Pages pages_;
  std::byte* hosts_ = nullptr;
  int64_t size_ = 0;
  MemoryRole role_ = MemoryRole::other;
};

}  // namespace st
