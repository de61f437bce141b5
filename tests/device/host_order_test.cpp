// A host's own stream on the delayed device: copies come after its work, and a wait that is missing is found.
#include "backend/host_order.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "delayed_backend.h"

namespace st {
namespace {

constexpr int64_t kSize = 64;

struct HostProgram {
  explicit HostProgram(Order in, Planted planted = Planted::nothing)
      : backend(make_cpu_backend(source), source, in, planted), order(backend) {
    std::memset(pinned->data(), 7, kSize);
    order.use(handle_of(*stream));
  }
  static int64_t handle_of(Stream& stream) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(&stream)); }
  void write() { stream->copy_to_device(a->data(), pinned->data(), kSize); }
  bool holds_seven(const Buffer& buffer) {
    std::array<std::byte, kSize> bytes{};
    backend.to_host(bytes.data(), buffer.data(), kSize);
    return std::memcmp(bytes.data(), pinned->data(), kSize) == 0;
  }

  std::shared_ptr<MemorySource> source = std::make_shared<MemorySource>();
  DelayedBackend backend;
  std::unique_ptr<PinnedMemory> pinned = backend.allocate_pinned(kSize);
  std::unique_ptr<Buffer> a = backend.allocate(kSize, MemoryRole::other), b = backend.allocate(kSize, MemoryRole::other);
  std::unique_ptr<Stream> stream = backend.make_stream();
  HostOrder order;
};

TEST(HostOrder, CopiesComeAfterTheHostsStream) {
  for (const Order in : kOrders) {
    HostProgram host(in);
    host.write();
    host.order.copy(host.b->data(), host.a->data(), kSize);
    EXPECT_TRUE(host.holds_seven(*host.b));

    HostProgram read(in);
    read.write();
    std::array<std::byte, kSize> bytes{};
    read.order.to_host(bytes.data(), read.a->data(), kSize);
    EXPECT_EQ(std::memcmp(bytes.data(), read.pinned->data(), kSize), 0);

    HostProgram overwritten(in);
    overwritten.write();
    const std::array<std::byte, kSize> zeros{};
    overwritten.order.to_device(overwritten.a->data(), zeros.data(), kSize);
    overwritten.stream->finish();
    EXPECT_FALSE(overwritten.holds_seven(*overwritten.a)) << "what the library wrote came last";
  }
}

TEST(HostOrder, AStreamOfOursComesAfterTheHosts) {
  for (const Order in : kOrders) {
    HostProgram host(in);
    const auto ours = host.backend.make_stream();
    host.write();
    host.order.precede(*ours);
    ours->copy(host.b->data(), host.a->data(), kSize);
    ours->finish();
    EXPECT_TRUE(host.holds_seven(*host.b));
  }
}

TEST(HostOrder, ConnectsTwoStreamsOfTheHosts) {
  for (const Order in : kOrders) {
    HostProgram host(in);
    const auto after = host.backend.make_stream();
    host.write();
    host.order.connect(host.order.handle(), HostProgram::handle_of(*after));
    after->copy(host.b->data(), host.a->data(), kSize);
    after->finish();
    EXPECT_TRUE(host.holds_seven(*host.b));
  }
}

TEST(HostOrder, AMissingWaitIsFound) {
  HostProgram lacking(Order::late, Planted::stream_does_not_wait);
  lacking.write();
  lacking.order.copy(lacking.b->data(), lacking.a->data(), kSize);
  EXPECT_FALSE(lacking.holds_seven(*lacking.b));

  HostProgram none(Order::late);
  none.order.use(HostOrder::kNone);
  none.write();
  none.order.copy(none.b->data(), none.a->data(), kSize);
  EXPECT_FALSE(none.holds_seven(*none.b)) << "the host has said that it waits itself";
}

}  // namespace
}  // namespace st
