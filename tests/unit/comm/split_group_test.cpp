// Groups that are split from a group, over every transport.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mesh.h"
#include "base/text.h"
#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"
#include "every_group.h"
#include "plain_reduction.h"
#include "thrown_error.h"

namespace st {
namespace {

constexpr Mesh kMesh{.data = 3, .tensor = 2, .stage = 1};

CommunicatorOptions with_patience(double seconds) {
  CommunicatorOptions options;
  options.deadline = seconds;
  return options;
}

std::unique_ptr<Communicator> along(Communicator& whole, MeshAxis axis, double deadline = 20) {
  return whole.split(color_along(kMesh, axis, whole.rank()), whole.rank(), with_patience(deadline), false);
}

/// Calls first() here and second() on another thread; returns their exceptions.
std::array<std::exception_ptr, 2> at_once(const std::function<void()>& first, const std::function<void()>& second) {
  std::array<std::exception_ptr, 2> caught;
  const auto call = [](const std::function<void()>& body, std::exception_ptr& into) {
    try {
      body();
    } catch (...) {
      into = std::current_exception();
    }
  };
  std::thread other([&] { call(second, caught[1]); });
  call(first, caught[0]);
  other.join();
  return caught;
}

void rethrow(const std::array<std::exception_ptr, 2>& caught) {
  for (const auto& one : caught)
    if (one) std::rethrow_exception(one);
}

Bytes values_of(int whole_rank, int64_t elements) { return drawn(DType::f32, elements, 7 + static_cast<uint32_t>(whole_rank)); }

/// All-reduces of several sizes, each with the bits of the sum in the order of the group's ranks; then a ring of messages.
void exchange_in(Communicator& group, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const int64_t elements : {3, 20'000}) {
      std::vector<Bytes> ranks;
      for (int rank = 0; rank < group.size(); ++rank) ranks.push_back(values_of(group.whole_rank(rank) + round, elements));
      Bytes own = ranks[static_cast<size_t>(group.rank())];
      group.all_reduce(own.data(), elements, DType::f32, ReduceOp::sum, "axis");
      ASSERT_EQ(own, plainly_reduced(DType::f32, ReduceOp::sum, ranks)) << elements << " elements, round " << round;
    }
    const int next = (group.rank() + 1) % group.size(), last = (group.rank() + group.size() - 1) % group.size();
    Bytes from(80'000);
    const auto send = [&] {
      const Bytes own = values_of(group.whole_rank(group.rank()), 20'000);
      group.send(own.data(), 20'000, DType::f32, next);
    };
    if (group.rank() > 0) group.receive(from.data(), 20'000, DType::f32, last);
    send();
    if (group.rank() == 0) group.receive(from.data(), 20'000, DType::f32, last);
    ASSERT_EQ(from, values_of(group.whole_rank(last), 20'000));
  }
}

TEST_P(EveryGroup, BothAxesOfAMeshExchangeAtOnceWithTheBitsOfTheirOrder) {
  run(6, [](Communicator& whole) {
    const auto tensor = along(whole, MeshAxis::tensor), data = along(whole, MeshAxis::data);
    ASSERT_EQ(tensor->size(), 2);
    ASSERT_EQ(data->size(), 3);
    EXPECT_EQ(tensor->whole_rank(tensor->rank()), whole.rank());
    EXPECT_EQ(data->rank(), position_of(kMesh, whole.rank()).data);
    rethrow(at_once(
        [&] {
          exchange_in(*tensor, 2);
          exchange_in(whole, 1);
        },
        [&] { exchange_in(*data, 2); }));
  });
}

TEST_P(EveryGroup, AGroupGoesOnWhileAThreadWaitsInAnother) {
  run(2, [](Communicator& whole) {
    const auto other = whole.duplicate(with_patience(20));
    const std::vector<float> sent(300'000, 2);  // more than the transport and a window hold
    std::vector<float> got(sent.size());
    const auto receives = [&] { whole.receive(got.data(), std::ssize(got), DType::f32, 0); };
    const auto sends = [&] { whole.send(sent.data(), std::ssize(sent), DType::f32, 1); };
    const auto barriers = [&] {
      for (int i = 0; i < 50; ++i) other->barrier();
    };
    if (whole.rank() == 0) return rethrow(at_once(sends, barriers));
    barriers();  // and only then is the message received
    receives();
    EXPECT_EQ(got, sent);
  });
}

TEST_P(EveryGroup, KeysOrderTheRanksOfAGroupAndGroupsSplitAgain) {
  run(4, [](Communicator& whole) {
    auto reversed = whole.split(0, -whole.rank(), with_patience(20), false);
    ASSERT_EQ(reversed->rank(), 3 - whole.rank());
    auto pair = reversed->split(reversed->rank() / 2, 0, with_patience(20), false);
    ASSERT_EQ(pair->size(), 2);
    EXPECT_EQ(pair->rank(), reversed->rank() % 2);
    EXPECT_EQ(pair->whole_rank(0), whole.rank() < 2 ? 1 : 3);
    exchange_in(*pair, 1);
    reversed.reset();
    exchange_in(*pair, 1);
    exchange_in(whole, 1);
    const auto alone = whole.split(whole.rank(), 0, with_patience(20), true);
    EXPECT_EQ(alone->size(), 1);
    exchange_in(*alone->duplicate(with_patience(20))->split(5, 0, with_patience(20), true)->duplicate(with_patience(20)), 0);
  });
}

TEST_P(EveryGroup, AColorOfOneRankIsRefusedOnAllAndTheGroupRemains) {
  run(3, [](Communicator& whole) {
    const Error error = error_of([&] { whole.split(whole.rank() / 2, 0, with_patience(20), false); });
    EXPECT_TRUE(is_error(error, Code::rank_mismatch, {"rank 2 (", "gives color 1 alone", "by rank are 0, 0, 1;", "allow_single"}));
    EXPECT_EQ(error.place.rank, 2);
    exchange_in(whole, 1);
    EXPECT_TRUE(is_error(error_of([&] { whole.split(-1, 0, with_patience(20), false); }), Code::invalid_argument, {"got -1"}));
    exchange_in(*whole.duplicate(with_patience(20)), 1);
  });
}

TEST_P(EveryGroup, ARankThatDoesNotSplitIsNamedOnAll) {
  const auto ends = outcomes(3, [](Communicator& whole) {
    if (whole.rank() == 1) return whole.barrier();
    whole.split(0, 0, with_patience(20), false);
  });
  for (const auto& end : ends) {
    const Error error = error_of(end);
    EXPECT_TRUE(is_error(error, Code::rank_mismatch, {"split", "barrier"}));
  }
}

/// Rank 4 calls rank_4(its two groups) while all others reduce on both axes at once. Their errors have one code; odd ranks throw
/// that of their tensor axis, even ranks that of their data axis.
Outcomes both_axes(std::vector<std::unique_ptr<Transport>> ends, const std::function<void(Communicator&, Communicator&)>& rank_4) {
  return outcomes_of(std::move(ends), {}, [&](Communicator& whole) {
    const auto tensor = along(whole, MeshAxis::tensor), data = along(whole, MeshAxis::data);
    int64_t is_here = 1;
    if (whole.rank() != 4) whole.send(&is_here, 1, DType::i64, 4);
    for (const int rank : {0, 1, 2, 3, 5})
      if (whole.rank() == 4) whole.receive(&is_here, 1, DType::i64, rank);
    if (whole.rank() == 4) return rank_4(*tensor, *data);
    const auto reduce_on = [](Communicator& group) {
      for (float value = 1;; value = 1) group.all_reduce(&value, 1, DType::f32, ReduceOp::sum, "axis");
    };
    const auto caught = at_once([&] { reduce_on(*tensor); }, [&] { reduce_on(*data); });
    const Error first = error_of(caught[0]), second = error_of(caught[1]);
    EXPECT_EQ(first.code(), second.code()) << first.message() << '\n' << second.message();
    throw whole.rank() % 2 == 1 ? first : second;
  });
}

TEST_P(EveryGroup, ARankThatAbortsInAGroupIsNamedOnBothAxes) {
  if (GetParam().most < 6) return;
  const auto ends = both_axes(GetParam().make(6), [](Communicator& tensor, Communicator&) { tensor.abort("enough"); });
  for (const size_t rank : {0, 1, 2, 3, 5}) {
    const Error error = error_of(ends[rank]);
    EXPECT_TRUE(is_error(error, Code::rank_failed, {"rank 4 (", "it has aborted: enough"}));
    EXPECT_EQ(error.place.rank, 4);
  }
  EXPECT_TRUE(is_error(error_of(ends[0]), Code::rank_failed, {"rank 4 (rank 2 of this group; "}));
  EXPECT_TRUE(is_error(error_of(ends[1]), Code::rank_failed, {"rank 4 (not in this group; "}));
  EXPECT_TRUE(is_error(error_of(ends[5]), Code::rank_failed, {"rank 4 (rank 0 of this group; "}));
}

TEST_P(EveryGroup, ARankThatCallsSomethingElseInAGroupIsNamedOnBothAxes) {
  if (GetParam().most < 6) return;
  const auto ends = both_axes(GetParam().make(6), [](Communicator& tensor, Communicator&) { tensor.barrier("other"); });
  for (const size_t rank : {0, 1, 2, 3, 5}) {
    const Error error = error_of(ends[rank]);
    EXPECT_TRUE(
        is_error(error, Code::rank_mismatch, {"in the group of ranks 4, 5, it calls ", "barrier (", "all_reduce (sum) of 1 f32 ("}));
    EXPECT_TRUE(error.place.rank == 4 || error.place.rank == 5) << "either may find it first";
  }
}

TEST_P(EveryGroup, ARankThatIsLateInAGroupIsNamedAtItsDeadline) {
  run(3, [](Communicator& whole) {
    const auto pair = whole.split(whole.rank() == 0 ? 0 : 1, 0, with_patience(0.3), true);
    if (whole.rank() == 1) {
      EXPECT_TRUE(is_error(error_of([&] { pair->barrier(); }), Code::timeout, {"rank 2 (rank 1 of this group; ", "not entered"}));
      return;
    }
    const Error error = error_of([&] { whole.barrier(); });
    EXPECT_TRUE(is_error(error, Code::timeout, {"in the group of ranks 1, 2, it is alive but"}));
    EXPECT_EQ(error.place.rank, 2);
  });
}

TEST_P(EveryGroup, ARankThatIsLateIsWaitedForWhereTheDeadlineIsForSilence) {
  run(2, [](Communicator& whole) {
    CommunicatorOptions options = with_patience(0.1);
    options.waits_for_living = true;
    options.warn = [](const std::string& what) { ADD_FAILURE() << what; };
    const auto group = whole.duplicate(options);
    if (whole.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    group->barrier();
  });
}

TEST_P(EveryGroup, AGroupWithoutAWarningOfItsOwnHasThatOfTheWhole) {
  Signal is_over;
  std::atomic<int> warnings{0};
  CommunicatorOptions options = with_patience(20);
  options.warn = [&](const std::string&) {
    ++warnings;
    is_over.raise();
  };
  const auto rank = [&](Communicator& whole) {
    std::optional<RaisesAtEnd> at_end;
    if (whole.rank() == 0) at_end.emplace(is_over);
    const auto group = whole.duplicate(with_patience(1.2));
    if (whole.rank() == 1) is_over.await();
    group->barrier();
  };
  run(2, rank, options);
  EXPECT_EQ(warnings, 1);
}

TEST_P(EveryGroup, ARankThatHasLeftAGroupIsNamedByThoseThatWaitForItThere) {
  const auto ends = outcomes(3, [](Communicator& whole) {
    auto group = whole.duplicate(with_patience(20));
    std::array<int64_t, 1> data = {whole.rank()};
    if (whole.rank() == 1) group->send(data.data(), 1, DType::i64, 2);
    if (whole.rank() == 1) group.reset();
    exchange_in(whole, 1);
    if (whole.rank() == 1) return;
    if (whole.rank() == 2) group->receive(data.data(), 1, DType::i64, 1);
    EXPECT_EQ(data[0], whole.rank() / 2);
    group->barrier();
  });
  for (const size_t rank : {0, 2}) EXPECT_TRUE(is_error(error_of(ends[rank]), Code::rank_failed, {"rank 1 (", "it has left the group"}));
  EXPECT_TRUE(is_error(error_of(ends[1]), Code::ok));
}

}  // namespace
}  // namespace st
