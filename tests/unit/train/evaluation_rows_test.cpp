#include "train/evaluation_rows.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "data/callback_rows.h"
#include "sequences.h"

namespace st {
namespace {

/// The first token of each visited row, and the number of rows of each visit.
struct Seen {
  std::vector<int32_t> firsts;
  std::vector<int64_t> counts;
};

Seen visit(EvaluationRows& rows, const std::shared_ptr<const Dataset>& data) {
  Seen seen;
  rows.each(data, [&](std::span<const HostView> views, int64_t count) {
    EXPECT_EQ(views[0].name, "tokens");
    EXPECT_EQ(views[0].shape, (Shape{count, 4}));
    seen.counts.push_back(count);
    for (int64_t r = 0; r < count; ++r) seen.firsts.push_back(static_cast<const int32_t*>(views[0].data)[r * 4]);
  });
  return seen;
}

/// The rows of Sequences, from a host callback.
std::shared_ptr<const Dataset> called_back(const std::shared_ptr<const Dataset>& whole) {
  const auto fields = whole->fields();
  return std::make_shared<CallbackRows>(whole->rows(), std::vector<Field>(fields.begin(), fields.end()),
                                        [whole](auto ids, auto out) { whole->fill(ids, out); });
}

TEST(EvaluationRows, AreEachOnceAndInOrder) {
  CancelToken cancelled;
  EvaluationRows rows(3, cancelled, nullptr);
  for (const int64_t n : {1, 2, 3, 4, 7, 9})
    for (const bool calls_host : {false, true}) {
      const auto there = std::make_shared<Sequences>(n, 4, 100);
      const std::shared_ptr<const Dataset> data = calls_host ? called_back(there) : there;
      const int64_t users = data.use_count();
      const Seen seen = visit(rows, data);
      ASSERT_EQ(std::ssize(seen.firsts), n);
      for (int64_t r = 0; r < n; ++r) EXPECT_EQ(seen.firsts[static_cast<size_t>(r)], 3 * r);
      EXPECT_EQ(std::ssize(seen.counts), (n + 2) / 3);
      EXPECT_EQ(data.use_count(), users) << "afterwards nothing is kept";
      EXPECT_EQ(rows.bytes(), 0);
    }
}

/// Sets the default stack size of threads for its lifetime.
class DefaultStack {
 public:
  explicit DefaultStack(size_t bytes) {
    pthread_attr_init(&attributes_);
    pthread_getattr_default_np(&attributes_);
    pthread_attr_getstacksize(&attributes_, &before_);
    set(bytes);
  }
  ~DefaultStack() {
    set(before_);
    pthread_attr_destroy(&attributes_);
  }
  DefaultStack(const DefaultStack&) = delete;
  DefaultStack& operator=(const DefaultStack&) = delete;

 private:
  void set(size_t bytes) {
    pthread_attr_setstacksize(&attributes_, bytes);
    EXPECT_EQ(pthread_setattr_default_np(&attributes_), 0);
  }
  pthread_attr_t attributes_;
  size_t before_ = 0;
};

TEST(EvaluationRows, ComeWithoutAThreadWhereTheSystemGivesNone) {
  CancelToken cancelled;
  EvaluationRows rows(3, cancelled, nullptr);
  std::atomic<int> here{0}, elsewhere{0};
  const auto data = std::make_shared<CallbackRows>(
      8, std::vector<Field>{{"tokens", DType::i32, {4}}},
      [&, caller = std::this_thread::get_id()](std::span<const int64_t> ids, std::span<const FieldView> out) {
        ++(std::this_thread::get_id() == caller ? here : elsewhere);
        for (size_t i = 0; i < ids.size(); ++i) reinterpret_cast<int32_t*>(out[0].data)[i * 4] = static_cast<int32_t>(ids[i]);
      });
  const Seen with_thread = visit(rows, data);
  EXPECT_EQ(elsewhere, 3);
  EXPECT_EQ(here, 0);
  const DefaultStack larger_than_any_memory(size_t{1} << 47);
  const Seen without = visit(rows, data);
  EXPECT_EQ(here, 3);
  EXPECT_EQ(without.firsts, with_thread.firsts);
  EXPECT_EQ(without.counts, with_thread.counts);
}

TEST(EvaluationRows, OfAVisitThatFailsAreWaitedForByNobody) {
  CancelToken cancelled;
  EvaluationRows rows(1, cancelled, nullptr);
  std::atomic<bool> late{false}, let_go{false};
  const auto data = std::make_shared<CallbackRows>(2, std::vector<Field>{{"number", DType::i64, {}}}, [&](auto ids, auto) {
    if (ids[0] == 0) return;
    late = true;
    late.notify_all();
    let_go.wait(false);
  });
  const auto fail_once_late = [&](std::span<const HostView>, int64_t) {
    late.wait(false);
    fail(Code::not_finite, "the first row");
  };
  EXPECT_THROW(rows.each(data, fail_once_late), Error);
  EXPECT_GT(rows.bytes(), 0);
  rows.trim();
  EXPECT_GT(rows.bytes(), 0) << "the fill of the second row is in progress";
  let_go = true;
  let_go.notify_all();
  int64_t visited = 0;
  rows.each(data, [&](std::span<const HostView>, int64_t count) { visited += count; });
  EXPECT_EQ(visited, 2);
  EXPECT_EQ(rows.bytes(), 0);
  EXPECT_EQ(data.use_count(), 1);
}

TEST(EvaluationRows, AreBusyInsideTheirOwnCallback) {
  CancelToken cancelled, inner;
  EvaluationRows rows(1, cancelled, nullptr);
  auto others = std::make_unique<EvaluationRows>(1, inner, nullptr);
  std::shared_ptr<CallbackRows> data;
  std::atomic<Code> refused{Code::ok};
  std::atomic<int> fills{0};
  data = std::make_shared<CallbackRows>(1, std::vector<Field>{{"number", DType::i64, {}}}, [&](auto, auto) {
    ++fills;
    try {
      others->each(data, [](auto, auto) {});
    } catch (const Error& error) {
      refused = error.code();
    }
  });
  rows.each(data, [](auto, auto) {});
  EXPECT_EQ(refused, Code::busy);
  others.reset();  // its pending fills have been requested by now
  EXPECT_EQ(fills, 1) << "of the refused one nothing was asked";
}

}  // namespace
}  // namespace st
