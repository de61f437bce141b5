// Whose memory small things are made of: names, graphs, plans, lists. Inside the library `operator new` asks here
// (capi/src/operator_new.cpp), so every container's memory is that of the context which it is made for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/host_allocator.h"

namespace st {

/// The host's allocator as a heap of small blocks. Each block names its heap, which lives as long as its last block: where a block is freed
/// does not matter, nor who is served there.
class Heap {
 public:
  struct Release {
    void operator()(Heap* heap) const noexcept { heap->release(); }
  };
  using Own = std::unique_ptr<Heap, Release>;
  /// In the host's memory too. Throws HostMemoryError.
  static Own create(const HostAllocator& host);

  /// What this thread's blocks are made of; null: the process's own malloc.
  static Heap* current() noexcept;
  /// From now on, to the end of the HeapScope around; the first one of a scope stays, and null changes nothing.
  static void serve(Heap* heap) noexcept {
    if (heap != nullptr) serve_first(heap);
  }

  /// Null where the process has no memory left; throws HostMemoryError where the host has none.
  static void* take(size_t bytes, size_t align);
  static void give_back(void* block) noexcept;

 private:
  friend class HeapScope;
  explicit Heap(const HostAllocator& host) : host_(host) {}
  static void serve_first(Heap* heap) noexcept;
  void release() noexcept;

  HostAllocator host_;
  std::atomic<int64_t> references_{1};  // of its maker and of each block
};

/// Blocks made on this thread while it lives are of `heap`; null: of the process, for what no context owns.
class HeapScope {
 public:
  explicit HeapScope(Heap* heap) noexcept;
  ~HeapScope();
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

 private:
  Heap*& serving_;  // this thread's, which takes a call to find
  Heap* outer_;
};

/// What is made once and kept to the end of the process is no context's, whichever call came first.
template <class Make>
auto once_for_the_process(const Make& make) {
  const HeapScope process(nullptr);
  return make();
}

}  // namespace st
