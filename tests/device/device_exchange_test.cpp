// Collectives of ranks that share a device: the bits are the direct exchange's, and what is not in order is found.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "apart_backend.h"
#include "backend/kernel_side.h"
#include "base/combine.h"
#include "one_exchange.h"

namespace st {
namespace {

struct Terms {
  DType dtype;
  std::vector<std::vector<std::byte>> of_ranks;
  SumType sums = SumType::wide;
};

/// In 16 bits, an element at a time.
std::vector<std::byte> rounded(const Terms& terms, std::vector<std::byte> sums, bool adds) {
  for (size_t at = 0; at < sums.size(); at += 2)
    for (size_t rank = 0; rank < terms.of_ranks.size(); ++rank) {
      const std::byte* const term = terms.of_ranks[rank].data() + at;
      float sum = 0, next = 0;
      widen(terms.dtype, sums.data() + at, reinterpret_cast<std::byte*>(&sum), 1);
      widen(terms.dtype, term, reinterpret_cast<std::byte*>(&next), 1);
      sum = rank == 0 && !adds ? next : sum + next;
      narrow(terms.dtype, reinterpret_cast<const std::byte*>(&sum), sums.data() + at, 1);
    }
  return sums;
}

/// As the direct exchange adds them.
std::vector<std::byte> summed(const Terms& terms, std::vector<std::byte> sums, bool adds) {
  if (terms.sums == SumType::own && bytes_of(terms.dtype) == 2) return rounded(terms, std::move(sums), adds);
  const int64_t count = std::ssize(sums) / sum_bytes_of(terms.dtype);
  for (size_t rank = 0; rank < terms.of_ranks.size(); ++rank)
    rank == 0 && !adds ? widen(terms.dtype, terms.of_ranks[rank].data(), sums.data(), count)
                       : combine(terms.dtype, ReduceOp::sum, terms.of_ranks[rank].data(), sums.data(), count);
  return sums;
}

TEST(Fold, AddsInOrderOnEveryBackend) {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_cpu_backend());
  backends.push_back(make_reference_backend());
  backends.push_back(std::make_unique<ApartBackend>(std::make_shared<MemorySource>()));
  for (const Order order : kOrders) backends.push_back(delayed(order));
  constexpr int64_t kElements = 3000;  // several blocks, and a part of one
  const auto test = [&](DType dtype, SumType type) {
    for (const size_t ranks : {1, 2, 3, 8})
      for (const bool adds : {false, true}) {
        Terms terms{dtype, {}, type};
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          std::vector<std::byte> bytes(static_cast<size_t>(kElements * bytes_of(dtype)));
          const std::vector<float> values = numbers(kElements, rank + 1);
          if (is_floating(dtype))
            bytes = bytes_as(dtype, values);
          else
            std::memcpy(bytes.data(), values.data(), std::min(bytes.size(), values.size() * sizeof(float)));
          terms.of_ranks.push_back(std::move(bytes));
        }
        std::vector<std::byte> before(static_cast<size_t>(kElements * sum_bytes_of(dtype, type)));
        std::memcpy(before.data(), numbers(kElements, 99).data(), std::min<size_t>(before.size(), kElements * 4));
        if (type == SumType::own) before = bytes_as(dtype, numbers(kElements, 99));
        if (dtype == DType::f64) before = bytes_as(dtype, numbers(kElements, 99));
        const std::vector<std::byte> expected = summed(terms, before, adds);
        for (const auto& backend : backends) {
          const auto stream = backend->make_stream();
          std::vector<std::unique_ptr<Buffer>> memory;
          std::vector<Address> places;
          for (const auto& term : terms.of_ranks) {
            memory.push_back(backend->allocate(std::ssize(term), MemoryRole::other));
            backend->to_device(places.emplace_back(memory.back()->data()), term.data(), std::ssize(term));
          }
          const auto sums = backend->allocate(std::ssize(before), MemoryRole::other);
          backend->to_device(sums->data(), before.data(), std::ssize(before));
          backend->fold(*stream, {places, sums->data(), dtype, kElements, adds, type});
          stream->finish();
          std::vector<std::byte> result(before.size());
          backend->to_host(result.data(), sums->data(), std::ssize(result));
          EXPECT_EQ(result, expected) << backend->name() << ' ' << name_of(dtype) << ' ' << ranks << ' ' << adds;
        }
      }
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) test(dtype, SumType::wide);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) test(dtype, SumType::own);
}

TEST(Fold, TakesOneOfTheTermsAsThePlaceOfTheSums) {
  const auto backend = delayed(Order::late);
  const auto stream = backend->make_stream();
  const std::array<float, 3> values = {1, 20, 300};
  const auto memory = backend->allocate(sizeof values, MemoryRole::other);
  backend->to_device(memory->data(), values.data(), sizeof values);
  const std::array<Address, 3> terms = {memory->data(), memory->data() + 4, memory->data() + 8};
  backend->fold(*stream, {terms, terms[1], DType::f32, 1, false});
  stream->finish();
  float sum = 0;
  backend->to_host(&sum, terms[1], sizeof sum);
  EXPECT_EQ(sum, 321);
}

TEST(DeviceExchange, HasTheBitsAndTheBytesOfTheDirectExchange) {
  for (const Exchanged& what : kExchanged)
    for (const int ranks : {1, 2, 3, 5, 8}) {
      const int contributors = what.op == Op::rank_sums ? (ranks + 1) / 2 : ranks;
      const auto cpu = make_cpu_backend();
      const ExchangeOutcome expected = outcome_of(what, ranks, contributors, [&](int) -> Backend& { return *cpu; });
      for (const Order order : kOrders) {
        const auto device = delayed(order);
        const ExchangeOutcome outcome = outcome_of(what, ranks, contributors, [&](int) -> Backend& { return *device; });
        EXPECT_EQ(outcome.results, expected.results) << name_of(what.op) << ' ' << name_of(what.dtype) << ' ' << ranks;
        EXPECT_EQ(outcome.sent, expected.sent) << name_of(what.op) << ' ' << ranks;
        EXPECT_EQ(outcome.copied > 0, what.in_place) << name_of(what.op) << ' ' << ranks;  // nothing goes through the host
        EXPECT_EQ(device->allocated_bytes(), 0);
      }
    }
}

TEST(DeviceExchange, AllocatesCopiesOfTermsThatItsSumsOverwriteBeforeItRuns) {
  const auto device = delayed(Order::late);
  expect_none(on_ranks(2, [&](DirectExchange& group) {
    OneExchange one(*device, group, Op::rank_sums, DType::f64, 5, 0, 5);
    EXPECT_EQ(one.exchange.copied_bytes(), 64) << "40, aligned";
    one.run(2);
    one.result();
    EXPECT_EQ(one.exchange.copied_bytes(), 64);
    group.barrier();
  }));
}

TEST(DeviceExchange, GoesThroughTheHostWhereRanksHaveDevicesOfTheirOwn) {
  for (const Exchanged& what : kExchanged) {
    constexpr int kRanks = 3;
    const auto cpu = make_cpu_backend();
    const auto first = delayed(Order::late), others = delayed(Order::random);
    const ExchangeOutcome expected = outcome_of(what, kRanks, kRanks, [&](int) -> Backend& { return *cpu; });
    const ExchangeOutcome outcome = outcome_of(what, kRanks, kRanks, [&](int rank) -> Backend& { return rank == 0 ? *first : *others; });
    EXPECT_EQ(outcome.results, expected.results) << name_of(what.op);
    EXPECT_EQ(outcome.sent, expected.sent) << name_of(what.op);
    EXPECT_GT(outcome.copied, 0);
  }
}

// Faults. The value that ranks exchange is copied to the operand right before, and another one over it right after.

constexpr Exchanged kValue = {Op::tensor_sum, DType::f32, 64};

std::vector<std::byte> value_of(int rank) { return bytes_as(DType::f32, numbers(kValue.elements, static_cast<uint32_t>(rank) + 1)); }

/// Whether all ranks get the sum.
bool adds_up(Order order, Planted planted, bool is_made_late, bool is_overwritten) {
  constexpr int kRanks = 3;
  const auto device = delayed(order, planted);
  Terms terms{DType::f32, {}};
  for (int rank = 0; rank < kRanks; ++rank) terms.of_ranks.push_back(value_of(rank));
  const std::vector<std::byte> expected = summed(terms, std::vector<std::byte>(terms.of_ranks[0].size()), false);
  std::atomic<int> right = 0;
  expect_none(on_ranks(kRanks, [&](DirectExchange& group) {
    OneExchange one(*device, group, kValue.op, kValue.dtype, kValue.elements, kValue.out(kRanks), kValue.whole(kRanks));
    const auto value = device->allocate(one.in_bytes, MemoryRole::other), other = device->allocate(one.in_bytes, MemoryRole::other);
    device->to_device(value->data(), value_of(group.rank()).data(), one.in_bytes);
    is_made_late ? one.computing->copy(one.from.data, value->data(), one.in_bytes) : one.set(value_of(group.rank()));
    one.run(kRanks);
    if (is_overwritten) one.computing->copy(one.from.data, other->data(), one.in_bytes);
    if (is_overwritten) {
      one.computing->finish();
      group.barrier();  // until all have written
    }
    one.exchanging->finish();
    if (one.result() == expected) ++right;
    group.barrier();  // no memory is freed before all have read
  }));
  return right == kRanks;
}

TEST(DeviceExchange, WaitsForWhatTheOthersWriteAndRead) {
  for (const Order order : kOrders) EXPECT_TRUE(adds_up(order, Planted::nothing, true, true));
}

TEST(DeviceExchange, ATestFindsAnEventThatIsTooEarly) {
  for (const Planted planted : {Planted::event_is_early, Planted::stream_does_not_wait})
    EXPECT_FALSE(adds_up(Order::late, planted, true, false)) << static_cast<int>(planted);
}

TEST(DeviceExchange, ATestFindsMemoryThatIsOverwrittenBeforeAnotherRankHasReadIt) {
  for (const Planted planted : {Planted::event_is_early, Planted::stream_does_not_wait})
    EXPECT_FALSE(adds_up(Order::late, planted, false, true)) << static_cast<int>(planted);
}

// Ranks that do not come, or end.

TEST(DeviceExchange, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  const auto device = delayed(Order::late);
  std::atomic<int> waiting = 0;
  const auto caught = on_ranks(
      3,
      [&](DirectExchange& group) {
        if (group.rank() == 2) {
          while (waiting < 2) std::this_thread::yield();
          return;
        }
        OneExchange one(*device, group, kValue.op, kValue.dtype, kValue.elements, kValue.out(3), kValue.whole(3));
        try {
          one.run(3);
        } catch (...) {
          ++waiting;
          throw;
        }
        ++waiting;
      },
      0.2);
  for (size_t rank : {0, 1}) EXPECT_TRUE(is_error(error_of(caught[rank]), Code::timeout, {"rank 2", "a value", "has not entered"}));
}

/// Calls `copied` before each copy, and counts records.
class WatchedStream : public Stream {
 public:
  WatchedStream(std::unique_ptr<Stream> stream, std::function<void()> copied, std::atomic<int>& records)
      : stream_(std::move(stream)), copied_(std::move(copied)), records_(records) {}
  void copy_to_device(Address to, const std::byte* pinned, int64_t bytes) override { stream_->copy_to_device(to, pinned, bytes); }
  void copy_to_host(std::byte* pinned, Address from, int64_t bytes) override { stream_->copy_to_host(pinned, from, bytes); }
  void copy(Address to, Address from, int64_t bytes) override {
    copied_();
    stream_->copy(to, from, bytes);
  }
  void record(Event& event) override {
    stream_->record(event);
    ++records_;
  }
  void wait(const Event& event) override { stream_->wait(event); }
  void finish() override { stream_->finish(); }
  const Prepared* failed() const override { return stream_->failed(); }

 private:
  std::unique_ptr<Stream> stream_;
  std::function<void()> copied_;
  std::atomic<int>& records_;
};

/// The memory that an ended rank frees is poisoned: who reads it late is killed.
TEST(DeviceExchange, ARankThatFailsFreesNothingThatTheOthersStillRead) {
  for (const Order order : kOrders) {
    constexpr int kRanks = 4;
    const auto device = delayed(order);
    std::atomic<int> records = 0;  // of the others' streams: that they have written, and have read
    const auto caught = on_ranks(kRanks, [&](DirectExchange& group) {
      int copies = 0;
      std::atomic<int> own_records = 0;
      const auto fail_late = [&] {
        if (group.rank() != 1 || ++copies == 1) return;  // the first is of its own rows
        while (records < 2 * (kRanks - 1)) std::this_thread::yield();
        fail(Code::io, "the device is gone");
      };
      const OneExchange::Wrap wrap = [&](std::unique_ptr<Stream> stream) {
        return std::make_unique<WatchedStream>(std::move(stream), fail_late, group.rank() == 1 ? own_records : records);
      };
      OneExchange one(*device, group, Op::tensor_gather, DType::f32, 5001, 5001 * kRanks, 5001 * kRanks, wrap);
      one.run(kRanks);
    });
    for (size_t rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(error_of(caught[rank]).code(), rank == 1 ? Code::io : Code::rank_failed) << error_of(caught[rank]).message();
    EXPECT_EQ(device->allocated_bytes(), 0);
  }
}

TEST(DeviceExchange, RanksThatAreAbortedReadNoMemoryThatIsFree) {
  for (const Order order : kOrders)
    for (int attempt = 0; attempt < 30; ++attempt) {
      const auto device = delayed(order);
      std::atomic<int> runs = 0;
      const auto caught = on_ranks(4, [&](DirectExchange& group) {
        OneExchange one(*device, group, Op::tensor_sum, DType::f32, 5001, 5001, 5001);
        std::thread aborts([&] {
          while (runs < attempt) std::this_thread::yield();
          if (group.rank() == 0) group.abort("enough");
        });
        const Error error = error_of([&] {
          for (;; ++runs) one.run(4);
        });
        aborts.join();
        throw error;
      });
      for (const std::exception_ptr& each : caught) EXPECT_EQ(error_of(each).code(), Code::rank_failed) << error_of(each).message();
      EXPECT_EQ(device->allocated_bytes(), 0);
    }
}

TEST(DeviceExchange, RefusesAnOperandOfAnotherDeviceByName) {
  const auto device = delayed(Order::eager), other = delayed(Order::eager);
  const auto caught = on_ranks(2, [&](DirectExchange& group) {
    OneExchange one(*device, group, Op::tensor_sum, DType::f32, 8, 8, 8);
    const auto elsewhere = other->allocate(32, MemoryRole::other);
    const_cast<Operand&>(one.from).data = elsewhere->data();
    one.exchange.place();
    one.run(2);
  });
  for (const std::exception_ptr& each : caught)
    EXPECT_TRUE(
        is_error(error_of(each), Code::invalid_argument, {"tensor_sum of a value", "input operand 0", "not in the memory of device cpu"}));
}

}  // namespace
}  // namespace st
