#include "data/callback_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "../base/allocations.h"
#include "data/prefetch.h"
#include "data/row_wait.h"
#include "data/subset.h"
#include "thrown_error.h"

namespace st {
namespace {

const std::vector<Field> kOneNumber = {{"row", DType::i64, {}}};

void write_ids(std::span<const int64_t> rows, std::span<const FieldView> out) {
  std::ranges::copy(rows, reinterpret_cast<int64_t*>(out[0].data));
}

std::shared_ptr<const CallbackRows> numbers(int64_t rows, MakeRows make = write_ids) {
  return std::make_shared<CallbackRows>(rows, kOneNumber, std::move(make));
}

Code code_of(const std::function<void()>& act) { return error_of(act).code(); }

void fill_one(const Dataset& data) {
  int64_t value = -1;
  data.fill(std::array<int64_t, 1>{0}, std::array{FieldView{reinterpret_cast<std::byte*>(&value), 8}});
}

TEST(CallbackRows, AreMadeInTheOrderAsked) {
  const auto data = numbers(10);
  std::vector<int64_t> values(3);
  data->fill(std::array<int64_t, 3>{7, 0, 7}, std::array{FieldView{reinterpret_cast<std::byte*>(values.data()), 24}});
  EXPECT_EQ(values, (std::vector<int64_t>{7, 0, 7}));
}

TEST(CallbackRows, RefuseWhatCannotBeAsked) {
  EXPECT_THROW(numbers(0), Error);
  EXPECT_THROW(numbers(1, nullptr), Error);
  EXPECT_THROW(CallbackRows(1, {}, write_ids), Error);
  EXPECT_THROW(CallbackRows(1, {{"x", DType::f32, {}}, {"x", DType::f32, {}}}, write_ids), Error);
  EXPECT_THROW(CallbackRows(INT64_MAX, {{"x", DType::f32, {}}}, write_ids), Error);
  const auto data = numbers(2);
  EXPECT_THROW(data->fill(std::array<int64_t, 1>{0}, std::array{FieldView{nullptr, 8}}), Error);
}

TEST(CallbackRows, AreMadeOneCallAtATimeForAllThreads) {
  std::atomic<int> inside{0}, worst{0};
  const auto data = numbers(100, [&](auto rows, auto out) {
    const int now = ++inside;
    int seen = worst;
    while (seen < now && !worst.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::yield();
    write_ids(rows, out);
    --inside;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) fill_one(*data);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(worst, 1);
}

TEST(CallbackRows, ThatFailLetTheNextCallIn) {
  bool broken = true;
  const auto data = numbers(4, [&](auto rows, auto out) {
    if (broken) fail(Code::callback, "broken");
    write_ids(rows, out);
  });
  EXPECT_EQ(code_of([&] { fill_one(*data); }), Code::callback);
  EXPECT_FALSE(RowWait(data->maker()).is_for_itself());
  broken = false;
  EXPECT_EQ(code_of([&] { fill_one(*data); }), Code::ok);
}

TEST(CallbackRows, ThatAskForTheirOwnAreBusyAndNotStuck) {
  std::shared_ptr<const CallbackRows> data;
  Code inner = Code::ok, through_subset = Code::ok;
  data = numbers(4, [&](auto rows, auto out) {
    EXPECT_TRUE(RowWait(data->maker()).is_for_itself());
    inner = code_of([&] { fill_one(*data); });
    through_subset = code_of([&] { fill_one(*split_rows(data, 0.5, 1).train); });
    write_ids(rows, out);
  });
  fill_one(*data);
  EXPECT_EQ(inner, Code::busy);
  EXPECT_EQ(through_subset, Code::busy);
}

TEST(CallbackRows, MayUseOtherData) {
  const auto other = numbers(4);
  Code inner = Code::internal;
  const auto data = numbers(4, [&](auto rows, auto out) {
    inner = code_of([&] { fill_one(*other); });
    write_ids(rows, out);
  });
  fill_one(*data);
  EXPECT_EQ(inner, Code::ok);
}

TEST(CallbackRows, MayNotWaitForAPrefetcherOfTheirOwn) {
  std::atomic<Prefetcher*> second{nullptr};
  std::atomic<Code> inner{Code::ok};
  const auto data = numbers(8, [&](auto rows, auto out) {
    if (Prefetcher* const other = second; other != nullptr) inner = code_of([&] { other->next(); });
    write_ids(rows, out);
  });
  Prefetcher standing(data, DataStream(8, 1), {2, 1}, 0, 2);
  second = &standing;
  Prefetcher first(data, DataStream(8, 2), {2, 1}, 0, 2);
  while (inner == Code::ok) first.next();
  EXPECT_EQ(inner, Code::busy);
  second = nullptr;
}

// A host's fill destroys its own trainer, or another one of the same data: neither may wait for the thread on which it is called.
TEST(CallbackRows, MayEndPrefetchersOfTheirOwn) {
  struct Host {
    std::unique_ptr<Prefetcher> first, second;
    std::atomic<bool> both{false};
    std::atomic<int> ends{0};
  };
  const auto host = std::make_shared<Host>();
  std::weak_ptr<const CallbackRows> held;
  {
    const auto data = numbers(8, [host](auto rows, auto out) {
      while (!host->both) std::this_thread::yield();
      if (host->ends++ == 0) {
        host->first.reset();
        host->second.reset();
      }
      write_ids(rows, out);
    });
    held = data;
    host->first = std::make_unique<Prefetcher>(data, DataStream(8, 1), MicroBatches{2, 1}, 0, 1);
    host->second = std::make_unique<Prefetcher>(data, DataStream(8, 2), MicroBatches{2, 1}, 0, 1);
    host->both = true;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!held.expired() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(held.expired()) << "the threads ended and let the data go";
  EXPECT_GE(host->ends, 1);
}

TEST(CallbackRows, OfASubsetAllocateNothingABatch) {
  const auto data = split_rows(numbers(100), 0.5, 1).train;
  Prefetcher prefetcher(data, DataStream(data->rows(), 1), {5, 2}, 0, 2);
  for (int i = 0; i < 4; ++i) prefetcher.next();
  const int64_t before = allocations();
  for (int i = 0; i < 200; ++i) prefetcher.next();
  EXPECT_EQ(allocations(), before);
}

}  // namespace
}  // namespace st
