#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backend/backend.h"
#include "backend/kernel_side.h"
#include "thrown_error.h"

namespace st {
namespace {

TEST(ReferenceBackend, HasAKernelForEveryOpButViewsAndExchange) {
  const auto backend = make_reference_backend();
  EXPECT_EQ(backend->name(), "reference");
  EXPECT_EQ(backend->kernel_class(), "reference");
  for (int32_t op = 0; op < kOps; ++op) {
    const OpInfo& info = info_of(static_cast<Op>(op));
    const bool has = backend->kernels()[static_cast<size_t>(op)].run != nullptr;
    EXPECT_EQ(has, !info.view && !info.exchange) << info.name;
  }
}

TEST(HostBackend, GivesZeroedAlignedMemoryAndCountsIt) {
  const auto backend = make_reference_backend();
  auto a = backend->allocate(100001, MemoryRole::tensors);
  const auto b = backend->allocate(64, MemoryRole::tensors);
  EXPECT_EQ(backend->allocated_bytes(), 100065);
  EXPECT_EQ(a->size(), 100001);
  for (const auto* buffer : {a.get(), b.get()}) {
    EXPECT_EQ(buffer->data().at % 64, 0U);
    EXPECT_TRUE(std::all_of(pointer_to(buffer->data()), pointer_to(buffer->data()) + buffer->size(),
                            [](std::byte x) { return x == std::byte{0}; }));
  }
  a.reset();
  EXPECT_EQ(backend->allocated_bytes(), 64);
}

TEST(HostBackend, LetsABufferOutliveIt) {
  auto backend = make_reference_backend();
  const auto buffer = backend->allocate(8, MemoryRole::tensors);
  backend.reset();
  pointer_to(buffer->data())[7] = std::byte{1};
  EXPECT_EQ(buffer->size(), 8);
}

TEST(HostBackend, GivesABufferOfNothing) {
  const auto backend = make_reference_backend();
  EXPECT_EQ(backend->allocate(0, MemoryRole::tensors)->size(), 0);
}

TEST(HostBackend, CopiesToTheDeviceAndBack) {
  const auto backend = make_reference_backend();
  const auto buffer = backend->allocate(16, MemoryRole::tensors);
  const int64_t in = 0x0123456789ABCDEF;
  int64_t out = 0;
  backend->to_device(buffer->data() + 8, &in, 8);
  backend->to_host(&out, buffer->data() + 8, 8);
  EXPECT_EQ(out, in);
}

TEST(HostBackend, RefusesWhatTheMachineDoesNotHave) {
  const auto backend = make_reference_backend();
  EXPECT_THROW(backend->allocate(-1, MemoryRole::tensors), Error);
  EXPECT_TRUE(is_error(error_of([&] { backend->allocate(int64_t{1} << 60, MemoryRole::tensors); }), Code::out_of_memory));
  EXPECT_EQ(backend->allocated_bytes(), 0);
}

}  // namespace
}  // namespace st
