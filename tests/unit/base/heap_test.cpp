#include "base/heap.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace st {
namespace {

/// A host allocator that counts; its addresses are `skew` bytes past the requested alignment.
struct CountingHost {
  HostAllocator allocator() {
    return {[](void* user, size_t bytes, size_t align) { return static_cast<CountingHost*>(user)->take(bytes, align); },
            [](void* user, void* memory) { static_cast<CountingHost*>(user)->give_back(memory); }, this};
  }
  void* take(size_t bytes, size_t align) {
    if (is_empty) return nullptr;
    ++out;
    ++taken;
    last_align = align;
    return static_cast<std::byte*>(std::aligned_alloc(align, (bytes + 2 * align - 1) / align * align)) + skew;
  }
  void give_back(void* memory) {
    --out;
    std::free(static_cast<std::byte*>(memory) - skew);
  }
  int64_t out = 0, taken = 0;
  size_t last_align = 0, skew = 0;
  bool is_empty = false;
};

bool is_aligned(const void* block, size_t align) { return reinterpret_cast<uintptr_t>(block) % align == 0; }

TEST(Heap, IsTheProcessesWhereNoneServes) {
  EXPECT_EQ(Heap::current(), nullptr);
  for (const size_t align : {size_t{1}, size_t{16}, size_t{64}, size_t{4096}}) {
    void* block = Heap::take(100, align);
    EXPECT_TRUE(is_aligned(block, std::max(align, size_t{16})));
    Heap::give_back(block);
  }
  Heap::give_back(nullptr);
}

TEST(Heap, GivesNullForMoreThanThereCanBe) {
  EXPECT_EQ(Heap::take(SIZE_MAX, 16), nullptr);
  EXPECT_EQ(Heap::take(SIZE_MAX - 64, 64), nullptr);
  EXPECT_EQ(Heap::take(SIZE_MAX / 2, 16), nullptr);
}

TEST(Heap, TakesFromTheHostThatServesAndGivesBackFromAnywhere) {
  CountingHost host;
  const Heap::Own heap = Heap::create(host.allocator());
  EXPECT_EQ(host.out, 1) << "the heap itself";
  void *small = nullptr, *aligned = nullptr;
  {
    const HeapScope scope(heap.get());
    small = Heap::take(1, 8);
    EXPECT_EQ(host.last_align, 16U);
    aligned = Heap::take(100, 64);
    EXPECT_EQ(host.last_align, 64U);
    EXPECT_TRUE(is_aligned(aligned, 64));
    EXPECT_EQ(host.out, 3);
  }
  Heap::give_back(small);
  std::thread([&] { Heap::give_back(aligned); }).join();
  EXPECT_EQ(host.out, 1);
}

TEST(Heap, LivesAsLongAsItsLastBlock) {
  CountingHost host;
  Heap::Own heap = Heap::create(host.allocator());
  void* block = nullptr;
  {
    const HeapScope scope(heap.get());
    block = Heap::take(10, 8);
  }
  heap.reset();
  EXPECT_EQ(host.out, 2);
  Heap::give_back(block);
  EXPECT_EQ(host.out, 0);
}

TEST(Heap, ServesTheFirstHandleOfACallAndTheCallAroundAfterwards) {
  CountingHost host;
  const Heap::Own first = Heap::create(host.allocator()), second = Heap::create(host.allocator());
  const HeapScope call(nullptr);
  Heap::serve(nullptr);
  EXPECT_EQ(Heap::current(), nullptr);
  Heap::serve(first.get());
  Heap::serve(second.get());
  EXPECT_EQ(Heap::current(), first.get());
  {
    const HeapScope inside(nullptr);
    Heap::serve(second.get());
    EXPECT_EQ(Heap::current(), second.get());
  }
  EXPECT_EQ(Heap::current(), first.get());
  std::thread([] { EXPECT_EQ(Heap::current(), nullptr); }).join();
}

TEST(Heap, OfTheProcessMakesWhatIsKept) {
  CountingHost host;
  const Heap::Own heap = Heap::create(host.allocator());
  const HeapScope scope(heap.get());
  EXPECT_EQ(once_for_the_process([] { return Heap::current(); }), nullptr);
  EXPECT_EQ(Heap::current(), heap.get());
}

void expect_refused(Code code, const std::string& reason) {
  try {
    Heap::take(48, 16);
    ADD_FAILURE() << "not refused; expected " << reason;
  } catch (const HostMemoryError& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

TEST(Heap, SaysWhatTheHostRefused) {
  CountingHost host;
  const Heap::Own heap = Heap::create(host.allocator());
  const HeapScope scope(heap.get());
  host.is_empty = true;
  expect_refused(Code::out_of_memory, "NULL for 64 bytes aligned to 16");
  host.is_empty = false;
  host.skew = 8;
  const int64_t out = host.out;
  expect_refused(Code::callback, "8 bytes past a multiple of 16");
  EXPECT_EQ(host.out, out) << "what it gave went back";
  host.skew = 0;
}

}  // namespace
}  // namespace st
