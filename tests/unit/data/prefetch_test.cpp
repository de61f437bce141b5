#include "data/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "../base/allocations.h"
#include "base/os/machine.h"
#include "thrown_error.h"

namespace st {
namespace {

/// Row r holds r and -r; fails at one row, and counts its calls.
class Counting final : public Dataset {
 public:
  explicit Counting(int64_t rows, int64_t bad_row = -1) : rows_(rows), bad_row_(bad_row) {}
  int64_t rows() const override { return rows_; }
  std::span<const Field> fields() const override { return fields_; }
  int64_t fills() const { return fills_.load(); }

 protected:
  void fill_checked(std::span<const int64_t> rows, std::span<const FieldView> out) const override {
    fills_.fetch_add(1);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == bad_row_) fail(Code::corrupt, text("row ", rows[i], " is broken"));
      reinterpret_cast<int64_t*>(out[0].data)[i] = rows[i];
      reinterpret_cast<float*>(out[1].data)[i] = -static_cast<float>(rows[i]);
    }
  }

 private:
  int64_t rows_, bad_row_;
  std::vector<Field> fields_ = {{"row", DType::i64, {}}, {"minus", DType::f32, {}}};
  mutable std::atomic<int64_t> fills_{0};
};

/// A dataset that outlives its prefetcher anyway.
std::shared_ptr<const Dataset> borrowed(const Dataset& data) { return {std::shared_ptr<void>(), &data}; }

void expect_batch(const Batch& batch, const DataStream& stream, int64_t first) {
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const int64_t row = stream[first + static_cast<int64_t>(i)];
    ASSERT_EQ(batch.rows[i], row);
    ASSERT_EQ(reinterpret_cast<const int64_t*>(batch.fields[0].data)[i], row);
    ASSERT_EQ(reinterpret_cast<const float*>(batch.fields[1].data)[i], -static_cast<float>(row));
  }
}

TEST(Prefetcher, GivesTheStreamInOrderAtEveryDepth) {
  const Counting data(101);
  const DataStream stream(101, 9);
  for (const int64_t depth : {0, 1, 2, 7}) {
    Prefetcher prefetcher(borrowed(data), stream, {3, 4}, 24, depth);
    for (int64_t i = 0; i < 400; ++i) {
      const Batch& batch = prefetcher.next();
      ASSERT_EQ(batch.cursor, 24 + i / 4 * 12);
      ASSERT_EQ(batch.micro_batch, i % 4);
      expect_batch(batch, stream, 24 + 3 * i);
      for (const auto& field : batch.fields) EXPECT_EQ(reinterpret_cast<uintptr_t>(field.data) % 64, 0U);
    }
  }
}

TEST(Prefetcher, GivesARankItsOwnMicroBatches) {
  const Counting data(50);
  const DataStream stream(50, 9);
  // 5 micro-batches on 3 ranks: rank 1 computes 1 and 4, rank 2 computes 2.
  Prefetcher one(borrowed(data), stream, {2, 5, 3, 1}, 0, 2);
  Prefetcher two(borrowed(data), stream, {2, 5, 3, 2}, 0, 2);
  for (int64_t step = 0; step < 20; ++step) {
    for (const int64_t k : {1, 4}) {
      const Batch& batch = one.next();
      ASSERT_EQ(batch.micro_batch, k);
      expect_batch(batch, stream, step * 10 + k * 2);
    }
    ASSERT_EQ(two.next().micro_batch, 2);
  }
}

TEST(Prefetcher, FillsAheadButNotFurtherThanItsDepth) {
  const Counting data(1000);
  Prefetcher prefetcher(borrowed(data), DataStream(1000, 1), {4, 1}, 0, 3);
  prefetcher.next();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (data.fills() < 4 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(data.fills(), 4);  // the one in use and three ahead
}

TEST(Prefetcher, KeepsTheBatchUntilTheNextCall) {
  const Counting data(1000);
  const DataStream stream(1000, 1);
  Prefetcher prefetcher(borrowed(data), stream, {8, 1}, 0, 1);
  for (int64_t i = 0; i < 200; ++i) {
    const Batch& batch = prefetcher.next();
    while (data.fills() < i + 2) std::this_thread::yield();  // the next one is filled and has not overwritten this one
    expect_batch(batch, stream, 8 * i);
  }
}

TEST(Prefetcher, ThrowsAnErrorWhenItsBatchIsDue) {
  const DataStream stream(100, 4);
  const Counting data(100, stream[3 * 10 + 5]);  // in the fourth batch
  for (const int64_t depth : {0, 1, 5}) {
    Prefetcher prefetcher(borrowed(data), stream, {10, 1}, 0, depth);
    for (int64_t i = 0; i < 3; ++i) expect_batch(prefetcher.next(), stream, 10 * i);
    for (int again = 0; again < 3; ++again) EXPECT_TRUE(is_error(error_of([&] { prefetcher.next(); }), Code::corrupt, {"is broken"}));
  }
}

TEST(Prefetcher, RewindsToACursor) {
  const Counting data(101);
  const DataStream stream(101, 9);
  for (const int64_t depth : {0, 1, 2, 7}) {
    Prefetcher prefetcher(borrowed(data), stream, {3, 2}, 0, depth);
    for (int64_t round = 0; round < 50; ++round) {
      for (int64_t i = 0; i < round % 5; ++i) prefetcher.next();
      prefetcher.rewind(6 * round);
      const int64_t fills = data.fills();
      if (depth > 0 && round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      EXPECT_LE(data.fills(), fills + 1) << "beyond what was under way it waits to be asked";
      const Batch& batch = prefetcher.next();
      ASSERT_EQ(batch.cursor, 6 * round);
      ASSERT_EQ(batch.micro_batch, 0);
      expect_batch(batch, stream, 6 * round);
    }
  }
}

TEST(Prefetcher, ClearsAnErrorOnRewind) {
  const DataStream stream(100, 4);
  const Counting data(100, stream[3 * 10 + 5]);  // in the fourth batch
  for (const int64_t depth : {0, 1, 5}) {
    Prefetcher prefetcher(borrowed(data), stream, {10, 1}, 20, depth);
    for (int again = 0; again < 3; ++again) {
      expect_batch(prefetcher.next(), stream, 20);
      EXPECT_THROW(prefetcher.next(), Error);
      prefetcher.rewind(20);
    }
  }
}

/// Rows that are available only when the test allows it.
class Late final : public Dataset {
 public:
  int64_t rows() const override { return 8; }
  std::span<const Field> fields() const override { return fields_; }
  void let_go() {
    free_ = true;
    free_.notify_all();
  }
  int64_t fills() const { return fills_; }

 protected:
  void fill_checked(std::span<const int64_t>, std::span<const FieldView>) const override {
    ++fills_;
    free_.wait(false);
  }

 private:
  std::vector<Field> fields_ = {{"row", DType::i64, {}}};
  std::atomic<bool> free_{false};
  mutable std::atomic<int64_t> fills_{0};
};

TEST(Prefetcher, WaitsAsLongAsItsCallerHasPatience) {
  Late data;
  Prefetcher prefetcher(borrowed(data), DataStream(8, 1), {2, 1}, 0, 2);
  int asked = 0;
  EXPECT_EQ(prefetcher.next({.cancelled = [&] { return ++asked == 3; }}), nullptr);
  EXPECT_EQ(asked, 3);
  const double start = os::seconds();
  EXPECT_EQ(prefetcher.next({.deadline = start + 0.005, .cancelled = {}}), nullptr);
  EXPECT_GE(os::seconds(), start + 0.005);
  EXPECT_EQ(prefetcher.next({.deadline = start, .cancelled = {}}), nullptr);
  prefetcher.rewind(2);
  EXPECT_EQ(prefetcher.next({.deadline = start, .cancelled = {}}), nullptr) << "the dropped batch is still being filled";
  data.let_go();
  EXPECT_EQ(prefetcher.next().cursor, 2);
  for (int i = 0; i < 3; ++i) EXPECT_NE(prefetcher.next(Patience{}), nullptr);
}

TEST(Prefetcher, GivesEachRowOnceAndThenBatchesWithout) {
  for (const int64_t rows : {1, 2, 3, 4, 9, 10})
    for (const int64_t depth : {0, 1, 2, 7}) {
      const Counting data(rows);
      Prefetcher prefetcher(borrowed(data), RowOrder::once(rows), {.rows = 3}, 0, depth);
      std::vector<int64_t> seen;
      for (const Batch* batch = &prefetcher.next(); !batch->rows.empty(); batch = &prefetcher.next()) {
        EXPECT_EQ(batch->cursor, std::ssize(seen));
        EXPECT_EQ(std::ssize(batch->rows), std::min<int64_t>(3, rows - std::ssize(seen)));
        EXPECT_EQ(batch->fields[0].bytes, std::ssize(batch->rows) * 8);
        const auto* values = reinterpret_cast<const int64_t*>(batch->fields[0].data);
        seen.insert(seen.end(), values, values + batch->rows.size());
      }
      std::vector<int64_t> wanted(static_cast<size_t>(rows));
      std::iota(wanted.begin(), wanted.end(), 0);
      EXPECT_EQ(seen, wanted) << "depth " << depth;
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(prefetcher.next().rows.empty());
      EXPECT_EQ(data.fills(), (rows + 2) / 3) << "after the end nothing is asked for";
    }
}

TEST(Prefetcher, BeginsAgainAfterTheEnd) {
  const Counting data(7);
  for (const int64_t depth : {0, 1, 5}) {
    Prefetcher prefetcher(borrowed(data), RowOrder::once(7), {.rows = 4}, 0, depth);
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 3; ++i) prefetcher.next();
      prefetcher.rewind(4);
      const Batch& batch = prefetcher.next();
      ASSERT_EQ(batch.rows.size(), 3U);
      EXPECT_EQ(batch.rows[0], 4);
      prefetcher.rewind(0);
    }
  }
}

TEST(Prefetcher, ThatIsRetiredGivesUpItsDataWhenTheFillReturns) {
  const auto data = std::make_shared<Late>();
  {
    Prefetcher prefetcher(data, RowOrder::once(8), {.rows = 2}, 0, 1);
    while (data->fills() == 0) std::this_thread::yield();
    prefetcher.retire();
    EXPECT_FALSE(prefetcher.is_over());
    EXPECT_GT(prefetcher.buffer_bytes(), 0);
    EXPECT_EQ(data.use_count(), 2);
    data->let_go();
    while (!prefetcher.is_over()) std::this_thread::yield();
    EXPECT_EQ(prefetcher.buffer_bytes(), 0);
  }
  EXPECT_EQ(data.use_count(), 1);
  EXPECT_EQ(data->fills(), 1) << "it went on to the next batch";
}

TEST(Prefetcher, ThatIsRetiredOutsideAFillIsOverAtOnce) {
  for (const int64_t depth : {0, 1}) {
    const auto data = std::make_shared<Counting>(4, 0);
    Prefetcher prefetcher(data, RowOrder::once(4), {.rows = 2}, 0, depth);
    EXPECT_THROW(prefetcher.next(), Error);  // afterwards it fills nothing
    prefetcher.retire();
    EXPECT_TRUE(prefetcher.is_over());
    EXPECT_EQ(data.use_count(), 1);
  }
}

TEST(Prefetcher, StopsWhenItIsNotWantedAnyMore) {
  const Counting data(100);
  for (int round = 0; round < 100; ++round) {
    Prefetcher prefetcher(borrowed(data), DataStream(100, 1), {5, 2}, 0, 4);
    for (int i = 0; i < round % 7; ++i) prefetcher.next();
  }
}

TEST(Prefetcher, AllocatesNothingABatch) {
  const Counting data(100);
  Prefetcher prefetcher(borrowed(data), DataStream(100, 1), {5, 2}, 0, 2);
  prefetcher.next();
  const int64_t before = allocations();
  for (int i = 0; i < 200; ++i) prefetcher.next();
  EXPECT_EQ(allocations(), before);
}

TEST(Prefetcher, RefusesWhatCannotBe) {
  const Counting data(100);
  const DataStream stream(100, 1);
  EXPECT_THROW(Prefetcher(borrowed(data), stream, {5, 2}, 0, -1), Error);
  EXPECT_THROW(Prefetcher(borrowed(data), stream, {5, 2}, -1, 1), Error);
  EXPECT_THROW(Prefetcher(borrowed(data), stream, {0, 2}, 0, 1), Error);
  EXPECT_THROW(Prefetcher(borrowed(data), stream, {5, 2, 3, 2}, 0, 1), Error);  // a rank without a micro-batch
  EXPECT_THROW(Prefetcher(borrowed(data), stream, {int64_t{1} << 60, 2}, 0, 1), Error);
}

}  // namespace
}  // namespace st
