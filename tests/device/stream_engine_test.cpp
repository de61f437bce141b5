// The engine finds what host code of a device may do wrong.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "device_memory.h"
#include "stream_engine.h"

namespace st {
namespace {

/// A number that one stream makes and another one, or the host, reads.
struct TwoStreams {
  explicit TwoStreams(Order order) : engine(order) {}
  void make(int to) {
    engine.give(*first, [this, to] { value = to; });
  }
  void copy() {
    engine.give(*second, [this] { copied = value; });
  }

  StreamEngine engine;
  std::shared_ptr<StreamEngine::Queue> first = engine.make_queue(), second = engine.make_queue();
  std::shared_ptr<StreamEngine::Point> made = std::make_shared<StreamEngine::Point>();
  int value = 0, copied = -1;
};

class OfAllOrders : public testing::TestWithParam<Order> {};
INSTANTIATE_TEST_SUITE_P(StreamEngine, OfAllOrders, testing::ValuesIn(kOrders));

TEST_P(OfAllOrders, AnEventOrdersTwoStreams) {
  for (int i = 0; i < 20; ++i) {
    TwoStreams streams(GetParam());
    streams.make(7);
    streams.engine.record(*streams.first, streams.made);
    streams.engine.wait(*streams.second, streams.made);
    streams.copy();
    streams.engine.finish(*streams.second);
    EXPECT_EQ(streams.copied, 7);
  }
}

TEST_P(OfAllOrders, AnEventCountsAsItWasWhenItWasWaitedFor) {
  TwoStreams streams(GetParam());
  streams.engine.wait(*streams.second, streams.made);  // never recorded
  streams.copy();
  streams.engine.finish(*streams.second);
  streams.make(7);
  streams.engine.record(*streams.first, streams.made);
  streams.engine.wait(*streams.made);
  EXPECT_EQ(streams.value, 7);
}

TEST_P(OfAllOrders, WorkBehindAnErrorIsLeftOutAndTheErrorIsNamed) {
  TwoStreams streams(GetParam());
  const int name = 0;
  streams.engine.give(
      *streams.first, [] { throw std::runtime_error("bad token"); }, &name);
  streams.make(7);
  EXPECT_THROW(streams.engine.finish(*streams.first), std::runtime_error);
  EXPECT_EQ(streams.first->failed(), &name);
  EXPECT_EQ(streams.value, 0);
  streams.make(8);
  streams.engine.finish(*streams.first);
  EXPECT_EQ(streams.first->failed(), nullptr);
  EXPECT_EQ(streams.value, 8);
}

TEST(StreamEngine, LateFindsAMissingWait) {
  TwoStreams streams(Order::late);
  streams.make(7);
  streams.copy();
  streams.engine.finish(*streams.second);
  EXPECT_EQ(streams.copied, 0);
}

TEST(StreamEngine, LateFindsAnEventThatIsRecordedTooEarly) {
  TwoStreams streams(Order::late);
  streams.engine.record(*streams.first, streams.made);
  streams.make(7);
  streams.engine.wait(*streams.second, streams.made);
  streams.copy();
  streams.engine.finish(*streams.second);
  EXPECT_EQ(streams.copied, 0);
}

TEST(StreamEngine, LateFindsAReportThatIsReadEarly) {
  TwoStreams streams(Order::late);
  streams.make(7);
  EXPECT_EQ(streams.value, 0);
}

TEST(StreamEngine, LateFindsMemoryThatIsWrittenAgain) {
  TwoStreams streams(Order::late);
  streams.value = 1;
  streams.copy();
  streams.value = 2;
  streams.engine.finish(*streams.second);
  EXPECT_EQ(streams.copied, 2);
}

TEST(StreamEngine, RandomRunsStreamsInBothOrders) {
  int before = 0, after = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    StreamEngine engine(Order::random, seed);
    const auto first = engine.make_queue(), second = engine.make_queue();
    std::string order;
    engine.give(*first, [&] { order += 'a'; });
    engine.give(*second, [&] { order += 'b'; });
    engine.finish(*first);
    engine.finish(*second);
    ++(order == "ab" ? before : after);
  }
  EXPECT_GT(before, 0);
  EXPECT_GT(after, 0);
}

#ifdef ST_THREAD_SANITIZED
/// Written again while the stream may still read it: no order shows it here, since the value is the same.
void write_again(bool waits) {
  StreamEngine engine(Order::eager);
  const auto queue = engine.make_queue();
  const auto value = std::make_unique<int>(1), copied = std::make_unique<int>(0);
  engine.give(*queue, [from = value.get(), to = copied.get()] { *to = *from; });
  if (waits) engine.finish(*queue);
  *value = 1;
  engine.finish(*queue);
  std::exit(0);
}

TEST(StreamEngineDeathTest, ThreadSanitizerFindsWhatNoOrderShows) {
  EXPECT_EXIT(write_again(true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(write_again(false), testing::ExitedWithCode(66), "data race");
}
#endif

volatile char* at(Address place) { return reinterpret_cast<volatile char*>(place.at); }

TEST(DeviceMemoryDeathTest, TheHostIsKilledWhenItFollowsAnAddress) {
  const Address place = device_memory::allocate(100);
  EXPECT_EQ(*at(device_memory::for_kernels(place)), 0);
  EXPECT_DEATH(static_cast<void>(*at(place)), "");
  device_memory::free(place, 100);
}

TEST(DeviceMemoryDeathTest, AKernelIsKilledBehindTheEndAndInFreedMemory) {
  const Address place = device_memory::allocate(4096);
  *at(device_memory::for_kernels(place + 4095)) = 1;
  EXPECT_DEATH(*at(device_memory::for_kernels(place + 4096)) = 1, "");
  device_memory::free(place, 4096);
  EXPECT_DEATH(static_cast<void>(*at(device_memory::for_kernels(place))), "");
  EXPECT_NE(device_memory::allocate(4096), place);
}

TEST(DeviceMemory, AKernelGetsNoAddressOfTheHosts) {
  const int of_host = 0;
  EXPECT_ANY_THROW(device_memory::for_kernels({reinterpret_cast<uintptr_t>(&of_host)}));
  EXPECT_FALSE(device_memory::for_kernels({}));
}

}  // namespace
}  // namespace st
