// How groups end: the error on each rank when one is missing, late, makes another call, or is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/machine.h"
#include "comm/direct_exchange.h"
#include "comm/local/thread_group.h"
#include "every_group.h"
#include "thrown_error.h"

namespace st {
namespace {

using std::chrono::milliseconds;

void all_reduce(Communicator& group, int64_t elements = 4, DType dtype = DType::f32, ReduceOp op = ReduceOp::sum) {
  std::vector<std::byte> data(static_cast<size_t>(elements * 8));
  group.all_reduce(data.data(), elements, dtype, op, "bucket.3");
}

/// Waits until that rank has left the group. A thread's end first waits for readers of what it has sent, so that only gets some time.
void await_end_of(int rank, const DirectExchange& group) {
  const bool waits_for_reader = group.transport().name() == "threads";
  const double end = os::seconds() + 0.02;
  while (waits_for_reader ? os::seconds() < end : !group.transport().has_left(rank)) std::this_thread::sleep_for(milliseconds(1));
}

CommunicatorOptions with_deadline(double seconds) { return {.deadline = seconds, .is_cancelled = {}, .warn = {}, .chunk = 8192}; }

/// Succeeds for an Error of that code that names `rank` as at fault and contains each of the words.
testing::AssertionResult blames(const std::exception_ptr& outcome, Code code, int rank, const std::vector<std::string>& words = {}) {
  const Error error = error_of(outcome);
  if (error.code() == code && error.place.rank != rank)
    return testing::AssertionFailure() << "rank " << error.place.rank << ": " << error.what();
  if (error.code() == code && error.place.host.find(os::host_name()) == std::string::npos)
    return testing::AssertionFailure() << "host is \"" << error.place.host << '"';
  return is_error(error, code, words);
}

TEST_P(EveryGroup, ShowsBothSidesWhereRanksCallDifferentThings) {
  struct Difference {
    std::function<void(Communicator&)> one;  // called by rank 1; the others reduce 4 f32
    std::string its_text;
  };
  const std::array differences = {
      Difference{[](Communicator& group) { group.barrier(); }, "barrier ("},
      Difference{[](Communicator& group) { all_reduce(group, 5); }, "all_reduce (sum) of 5 f32 ("},
      Difference{[](Communicator& group) { all_reduce(group, 50000); }, "all_reduce (sum) of 50000 f32 ("},
      Difference{[](Communicator& group) { all_reduce(group, 4, DType::i32); }, "all_reduce (sum) of 4 i32 ("},
      Difference{[](Communicator& group) { all_reduce(group, 4, DType::f32, ReduceOp::max); }, "all_reduce (max) of 4 f32 ("},
  };
  for (const auto& [call, its_text] : differences) {
    const auto& one = call;  // clang 14's lambdas take no structured binding
    const auto ends = outcomes(3, [&](Communicator& group) {
      group.barrier();
      if (group.rank() == 1) return one(group);
      all_reduce(group);
    });
    const bool is_other_kind = its_text.find("all_reduce") == std::string::npos;
    for (const auto& end : ends) {
      const Error error = error_of(end);
      EXPECT_TRUE(is_error(error, Code::rank_mismatch, {its_text, "all_reduce (sum) of 4 f32 ("}));
      EXPECT_TRUE(!is_other_kind || error.message().find("differently") == std::string::npos) << error.what();
    }
  }
}

TEST_P(EveryGroup, RefusesARootOfAnotherRankAndAnotherWayToCut) {
  auto ends = outcomes(3, [](Communicator& group) {
    std::array<float, 2> data = {};
    group.broadcast(data.data(), 2, DType::f32, group.rank() == 2 ? 1 : 0);
    group.barrier();
  });
  EXPECT_TRUE(ends[0] && ends[1] && ends[2]);
  ends = outcomes(2, [](Communicator& group) {
    std::array<float, 3> data = {};
    const int64_t first = group.rank() == 0 ? 1 : 2;
    const std::array<Communicator::Shard, 2> pieces = {{{data.data(), first}, {data.data() + first, 3 - first}}};
    const std::array<Communicator::Shards, 2> parts = {{{&pieces[0], 1}, {&pieces[1], 1}}};
    group.gather_shards(parts, DType::f32, "weights");
  });
  for (const auto& end : ends) {
    ASSERT_TRUE(end);
    EXPECT_TRUE(blames(end, Code::rank_mismatch, 0, {"they shard the elements differently"}) ||
                blames(end, Code::rank_mismatch, 1, {"they shard the elements differently"}));
  }
}

TEST_P(EveryGroup, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  const auto is_named = [](int late, std::vector<std::unique_ptr<Transport>> group_ends) {
    const double began = os::seconds();
    Signal ended;
    const auto ends = outcomes_of(std::move(group_ends), with_deadline(1), [&](Communicator& group) {
      all_reduce(group, 50000);
      if (group.rank() == late) ended.await(3);
      const RaisesAtEnd at_end(ended);
      all_reduce(group, 50000);
    });
    for (const auto& end : ends)
      EXPECT_TRUE(blames(end, Code::timeout, late, {"all_reduce (sum) of 50000 f32 (bucket.3, #2)", "1 s", "#1 all_reduce"}));
    EXPECT_LT(os::seconds() - began, 5) << "a machine may be busy, but this is a hang";
  };
  // The rank that is awaited first is not the late one. Two groups wait at the same time.
  auto first = GetParam().make(4), second = GetParam().make(4);
  std::thread other(is_named, 0, std::move(first));
  is_named(2, std::move(second));
  other.join();
}

TEST_P(EveryGroup, ASlowRankIsWarnedOfAndWaitedFor) {
  std::mutex mutex;
  std::vector<std::string> warnings;
  double first_warned = 0;
  Signal warned;
  CommunicatorOptions options = with_deadline(1.2);
  options.warn = [&](const std::string& warning) {
    const std::lock_guard lock(mutex);
    if (warnings.empty()) first_warned = os::seconds();
    warnings.push_back(warning);
    warned.raise();
  };
  const double began = os::seconds();
  run(
      3,
      [&](Communicator& group) {
        if (group.rank() == 2) warned.await(2);
        all_reduce(group);
      },
      options);
  EXPECT_GE(first_warned - began, options.deadline / 4);
  for (const auto& warning : warnings)
    for (const char* words : {"bucket.3", "has waited ", "for rank 2 ("}) EXPECT_NE(warning.find(words), std::string::npos) << warning;
}

TEST_P(EveryGroup, ARankThatLeavesIsNamedByWhoWaitsForIt) {
  const auto ends = outcomes(4, [](Communicator& group) {
    all_reduce(group);
    if (group.rank() == 2) throw std::runtime_error("its callback has thrown");
    all_reduce(group);
  });
  for (const size_t rank : {0, 1, 3}) EXPECT_TRUE(blames(ends[rank], Code::rank_failed, 2, {"it has left the group"}));
}

TEST_P(EveryGroup, ARankThatLeavesInTheEndDoesNotDisturbTheOthers) {
  run(4, [](DirectExchange& group) {
    for (int round = 0; round < 5; ++round) all_reduce(group, 30000);
    if (group.rank() == 1) return;
    std::array<int64_t, 1> data = {group.rank()};
    // Rank 1 is not needed from here on.
    if (group.rank() == 0) group.send(data.data(), 1, DType::i64, 2);
    if (group.rank() == 2) group.receive(data.data(), 1, DType::i64, 0);
    if (group.rank() == 2) group.send(data.data(), 1, DType::i64, 3);
    if (group.rank() != 3) return;
    await_end_of(2, group);
    group.receive(data.data(), 1, DType::i64, 2);
    EXPECT_EQ(data[0], 0);
  });
}

TEST_P(EveryGroup, AnAbortFromAnotherThreadEndsEveryWait) {
  const auto ends = outcomes(3, [](Communicator& group) {
    all_reduce(group);
    if (group.rank() == 2) {  // makes its call only after the group has ended
      for (const double end = os::seconds() + 20; !group.has_ended() && os::seconds() < end;) std::this_thread::sleep_for(milliseconds(1));
      return all_reduce(group, 0);
    }
    std::thread other;
    if (group.rank() == 1) {
      other = std::thread([&] {
        std::this_thread::sleep_for(milliseconds(5));
        group.abort("the host says so");
      });
    }
    struct Join {
      std::thread& thread;
      ~Join() {
        if (thread.joinable()) thread.join();
      }
    } join{other};
    group.receive(std::array<float, 1>().data(), 1, DType::f32, 2);
  });
  for (const auto& end : ends) EXPECT_TRUE(blames(end, Code::rank_failed, 1, {"it has aborted: the host says so"}));
}

TEST_P(EveryGroup, ACancelledWaitEndsTheGroup) {
  // Only one rank is cancelled.
  Signal has_ended;
  auto ends = GetParam().make(3);
  const auto outcomes = caught_on_ranks(3, [&](int rank) {
    std::optional<RaisesAtEnd> at_end;  // of the group: by then the others have heard of it
    if (rank == 0) at_end.emplace(has_ended);
    int looks_left = 0;  // of rank 0's second wait
    CommunicatorOptions options;
    if (rank == 0) options.is_cancelled = [&] { return looks_left > 0 && --looks_left == 0; };
    DirectExchange group(std::move(ends[static_cast<size_t>(rank)]), options);
    group.barrier();
    if (rank == 2) has_ended.await();
    looks_left = 3;
    group.barrier();
  });
  const Error error = error_of(outcomes[0]);
  EXPECT_EQ(error.code(), Code::cancelled) << error.message();
  EXPECT_EQ(error.place.collective, "barrier");
  for (const size_t rank : {1, 2}) EXPECT_TRUE(blames(outcomes[rank], Code::rank_failed, 0, {"it has aborted: cancelled"}));
}

TEST_P(EveryGroup, WhatIsThrownWithinACallEndsTheGroup) {
  // As a failed allocation there would.
  std::atomic<bool> waits{false};
  Signal has_thrown;
  CommunicatorOptions options = with_deadline(1.2);
  options.warn = [&](const std::string&) {
    if (waits) throw std::runtime_error("no memory");
  };
  const auto ends = outcomes(
      2,
      [&](Communicator& group) {
        group.barrier();
        if (group.rank() == 1) {
          has_thrown.await();
          group.barrier();  // over a network it may succeed before the failure arrives
          return group.barrier();
        }
        waits = true;
        EXPECT_THROW(group.barrier(), std::runtime_error);
        has_thrown.raise();
        group.barrier();
      },
      options);
  EXPECT_TRUE(is_error(error_of(ends[0]), Code::rank_failed, {"an earlier collective of rank 0 failed"}));
  EXPECT_TRUE(blames(ends[1], Code::rank_failed, 0, {"it has failed"}));
}

TEST_P(EveryGroup, LaterCallsThrowTheSameAgain) {
  Signal is_over;
  const auto ends = outcomes(
      2,
      [&](Communicator& group) {
        if (group.rank() == 1) return is_over.await();
        const RaisesAtEnd at_end(is_over);
        const Error first = error_of([&] { all_reduce(group); });
        EXPECT_EQ(first.place.collective, "all_reduce");
        EXPECT_EQ(first.place.tensor, "bucket.3");
        const Error again = error_of([&] { group.barrier(); });
        EXPECT_EQ(again.message(), first.message());
        EXPECT_EQ(again.code(), Code::timeout);
      },
      with_deadline(0.03));
  for (const auto& end : ends) EXPECT_FALSE(end);
}

TEST_P(EveryGroup, GroupsOfOneProcessAreIndependent) {
  auto doomed_ends = GetParam().make(2), ends = GetParam().make(3);
  auto doomed = std::thread([&] {
    const auto its_ends = outcomes_of(std::move(doomed_ends), {}, [](Communicator& group) {
      for (int round = 0;; ++round) {
        all_reduce(group, 3000);
        if (round == 5 && group.rank() == 1) group.abort("enough");
      }
    });
    for (const auto& end : its_ends) EXPECT_TRUE(blames(end, Code::rank_failed, 1, {"enough"}));
  });
  const auto whole = outcomes_of(std::move(ends), {}, [](Communicator& group) {
    for (int round = 0; round < 200; ++round) all_reduce(group, 3000);
  });
  doomed.join();
  for (const auto& end : whole) EXPECT_FALSE(end);
}

TEST_P(EveryGroup, FreedMemoryIsNotReadAfterAnError) {
  // The root frees its memory as soon as its call has thrown, while the others may still copy it: sanitizers watch.
  for (int trial = 0; trial < 6; ++trial) {
    const auto ends = outcomes(3, [&](Communicator& group) {
      std::vector<uint8_t> data(size_t{2} << 20);
      group.barrier();
      if (group.rank() == 2) {
        std::this_thread::sleep_for(std::chrono::microseconds(100 * trial));
        return group.abort("now");
      }
      while (true) {
        if (group.rank() == 0)
          group.send(data.data(), std::ssize(data), DType::u8, 1);
        else
          group.receive(data.data(), std::ssize(data), DType::u8, 0);
      }
    });
    for (const size_t rank : {0, 1}) EXPECT_TRUE(blames(ends[rank], Code::rank_failed, 2, {"now"}));
  }
}

TEST_P(EveryGroup, WhatWasSentArrivesThoughItsSenderHasLeft) {
  run(2, [](DirectExchange& group) {
    std::array<int64_t, 3> data = {1, 2, 3};
    if (group.rank() == 0) return group.send(data.data(), 3, DType::i64, 1);
    data = {};
    await_end_of(0, group);
    group.receive(data.data(), 3, DType::i64, 0);
    EXPECT_EQ(data, (std::array<int64_t, 3>{1, 2, 3}));
    EXPECT_TRUE(is_error(error_of([&] { group.barrier(); }), Code::rank_failed, {"it has left the group"}));
  });
}

TEST_P(EveryGroup, WhatAReturnedCallSentArrivesWhileItsSenderComputes) {
  // Two of these do not fit a ring of the process group.
  constexpr int64_t kBytes = 6000;
  for (const bool sends : {true, false}) {
    Signal is_over;
    run(
        2,
        [&](Communicator& group) {
          std::array<uint8_t, kBytes> data = {};
          if (group.rank() == 0) {
            for (int i = 0; i < 2; ++i)
              sends ? group.send(data.data(), kBytes, DType::u8, 1) : group.broadcast(data.data(), kBytes, DType::u8, 0);
            return is_over.await();
          }
          const RaisesAtEnd at_end(is_over);
          std::this_thread::sleep_for(milliseconds(10));
          for (int i = 0; i < 2; ++i)
            sends ? group.receive(data.data(), kBytes, DType::u8, 0) : group.broadcast(data.data(), kBytes, DType::u8, 0);
        },
        with_deadline(1));
  }
}

TEST_P(EveryGroup, CallsThatCannotBeMadeLeaveTheGroupWhole) {
  run(2, [](Communicator& group) {
    std::array<float, 4> data = {};
    const auto refused = [&](const std::string& why, const auto& call) {
      EXPECT_TRUE(is_error(error_of(call), Code::invalid_argument, {why}));
    };
    refused("the data is null", [&] { group.all_reduce(nullptr, 4, DType::f32, ReduceOp::sum); });
    refused("elements must be 0 to", [&] { group.broadcast(data.data(), -1, DType::f32, 0); });
    refused("booleans cannot be reduced", [&] { group.all_reduce(data.data(), 4, DType::boolean, ReduceOp::max); });
    refused("integers have no mean", [&] { group.all_reduce(data.data(), 4, DType::i32, ReduceOp::mean); });
    refused("op must be sum, mean, max or min, got 9", [&] { group.all_reduce(data.data(), 4, DType::f32, static_cast<ReduceOp>(9)); });
    refused("root must be 0 to 1, got 2", [&] { group.broadcast(data.data(), 4, DType::f32, 2); });
    refused("another rank of 0 to 1; this is rank ", [&] { group.send(data.data(), 4, DType::f32, group.rank()); });
    refused("another rank of 0 to 1; this is rank ", [&] { group.receive(data.data(), 4, DType::f32, -1); });
    refused("must be a multiple of the number of ranks, 2", [&] { group.all_to_all(data.data(), data.data(), 3, DType::f32); });
    all_reduce(group);
  });
}

TEST_P(EveryGroup, TheRecorderShowsTheLastCollectives) {
  run(2, [](Communicator& group) {
    for (int i = 0; i < 100; ++i) group.barrier();
    all_reduce(group, 8);
    const std::string text = group.recorder().text();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), FlightRecorder::kKept - 1);
    EXPECT_NE(text.find("#101 all_reduce (sum) of 8 f32 bucket.3: 32 bytes in "), std::string::npos) << text;
    EXPECT_EQ(text.find("#37 "), std::string::npos) << text;
    const std::string json = group.recorder().json();
    EXPECT_NE(
        json.find(R"({"sequence":101,"collective":"all_reduce","op":"sum","dtype":"f32","elements":8,"label":"bucket.3","bytes":32,)"),
        std::string::npos)
        << json;
  });
}

TEST(CommunicatorOptions, OutOfTheirRangeAreRefused) {
  CommunicatorOptions options;
  options.chunk = 0;
  EXPECT_THROW(DirectExchange(std::move(make_thread_group(1)[0]), options), Error);
  EXPECT_THROW(DirectExchange(std::move(make_thread_group(1)[0]), with_deadline(0)), Error);
}

TEST(ThreadGroup, WhoReadsALargePieceSlowlyIsNotLate) {
  auto ends = make_thread_group(2);
  std::atomic<int> warned{0};
  std::thread sender([&] {
    CommunicatorOptions options = with_deadline(0.4);
    options.warn = [&](const std::string&) { ++warned; };
    DirectExchange group(std::move(ends[0]), options);
    const std::vector<std::byte> data(100'000);
    EXPECT_NO_THROW(group.send(data.data(), std::ssize(data), DType::u8, 1));
  });
  Transport& reader = *ends[1];
  const auto arrived = [&] {
    while (reader.arrived(0).empty() && !reader.failure())
      if (!reader.progress()) reader.idle(0.1);
    return std::ssize(reader.arrived(0));
  };
  reader.take(0, arrived());  // its header
  // A warning a quarter of the deadline after each byte, so all together take more than a deadline.
  for (int bytes = 1; bytes < 6; ++bytes) {
    arrived();
    while (warned < bytes && !reader.failure()) std::this_thread::sleep_for(milliseconds(1));
    if (reader.failure()) break;
    reader.take(0, 1);
  }
  if (!reader.failure()) reader.take(0, arrived());
  ends[1].reset();  // or a failed sender would wait until the reader stops reading
  sender.join();
}

TEST(ThreadGroup, RefusesSizesThatAreNone) {
  EXPECT_THROW(make_thread_group(0), Error);
  EXPECT_THROW(make_thread_group(kMaxThreadRanks + 1), Error);
}

}  // namespace
}  // namespace st
