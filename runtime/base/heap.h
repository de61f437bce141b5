// Which allocator serves small objects: names, graphs, plans, lists. Inside the library `operator new` calls Heap::take
// (capi/src/operator_new.cpp), so every container's memory comes from the context that it is made for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/host_allocator.h"

namespace st {

/// The host's allocator as a heap of small blocks. Each block points to its heap, which lives as long as its last block, so a block may be
/// freed on any thread and in any scope.
class Heap {
 public:
  struct Release {
    void operator()(Heap* heap) const noexcept { heap->release(); }
  };
  using Own = std::unique_ptr<Heap, Release>;
  /// The heap object is in the host's memory too. Throws HostMemoryError.
  static Own create(const HostAllocator& host);

  /// The heap that serves this thread; null: the process's malloc.
  static Heap* current() noexcept;
  /// Serves this thread from `heap` until the enclosing HeapScope ends. Only a scope's first call has an effect; null has none.
  static void serve(Heap* heap) noexcept {
    if (heap != nullptr) serve_first(heap);
  }

  /// Null when the process is out of memory; throws HostMemoryError when the host's allocator fails.
  static void* take(size_t bytes, size_t align);
  static void give_back(void* block) noexcept;

 private:
  friend class HeapScope;
  explicit Heap(const HostAllocator& host) : host_(host) {}
  static void serve_first(Heap* heap) noexcept;
  void release() noexcept;

  HostAllocator host_;
  std::atomic<int64_t> references_{1};  // one of its creator, one per block
};

/// While it lives, this thread's blocks come from `heap`; null: from the process, for objects that belong to no context.
class HeapScope {
 public:
  explicit HeapScope(Heap* heap) noexcept;
  ~HeapScope();
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

 private:
  Heap*& serving_;  // this thread's; kept because finding it takes a call
  Heap* outer_;
};

/// Makes an object that lives until the process ends. It belongs to no context, whichever call came first.
template <class Make>
auto once_for_the_process(const Make& make) {
  const HeapScope process(nullptr);
  return make();
}

}  // namespace st
