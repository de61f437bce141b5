// What the other ranks report of one that is killed, stopped or slow: T26 and T27 of traps.md, over shared memory.
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/os/machine.h"
#include "base/text.h"
#include "forked_ranks.h"
#include "shared_job.h"

namespace st {
namespace {

/// Runs all-reduces of many sizes, one after another, until `is_over` returns true on rank 0.
void reduce_on(
    Communicator& group, const std::function<bool()>& is_over = [] { return false; }) {
  std::vector<float> values(60'000);
  for (int64_t round = 0;; ++round) {
    values[0] = group.rank() == 0 && is_over() ? 1 : 0;
    group.all_reduce(values.data(), 1 + round * 7919 % 60'000, DType::f32, ReduceOp::max, "gradients");
    if (values[0] == 1) return;
  }
}

/// A rank of four that reports when it is ready, and the error that ends its reductions.
void reduce_until_it_fails(Communicator& group, const ForkedRanks::Say& say) {
  say("ready");
  say_outcome(say, [&] { reduce_on(group); });
}

/// The error of a rank, expected to name `culprit`.
Outcome next_blames(ForkedRanks& ranks, int rank, Code code, int culprit) {
  const Outcome outcome = outcome_from(ranks.next_line(rank));
  EXPECT_EQ(outcome.code, code) << outcome.message;
  EXPECT_EQ(outcome.rank, culprit) << outcome.message;
  EXPECT_EQ(outcome.collective, "all_reduce");
  return outcome;
}

TEST(DyingRanks, AKilledOneIsNamedOnAllOthersWithinASecondAndTheyGoOn) {
  std::random_device device;
  std::mt19937 random(device());
  for (int trial = 0; trial < 8; ++trial) {
    const std::string job = own_job(text("killed ", trial));
    const int victim = static_cast<int>(random() % 4);
    ForkedRanks ranks(4, [&](int rank, const ForkedRanks::Say& say) {
      auto group = join(job, rank, 4);
      reduce_until_it_fails(*group, say);
      say_outcome(say, [&] { group->barrier(); });  // the ended group throws again
      group.reset();
      auto smaller = join(job, rank < victim ? rank : rank - 1, 3);
      int32_t sum = 1;
      smaller->all_reduce(&sum, 1, DType::i32, ReduceOp::sum);
      say(text("of ", sum));
    });
    ASSERT_EQ(ranks.all_say("ready"), "ready");
    const double pause = static_cast<double>(random() % 20'000) * 1e-6;
    SCOPED_TRACE(text("rank ", victim, " is killed after ", pause, " s"));
    sleep_for(pause);
    const double killed = os::seconds();
    ranks.signal(victim, SIGKILL);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      const Outcome outcome = next_blames(ranks, rank, Code::rank_failed, victim);
      EXPECT_LT(outcome.when - killed, 1) << outcome.message;
      EXPECT_NE(outcome.message.find(
                    text("rank ", victim, " (", os::host_name(), ", process ", ranks.process_of(victim), "): its process has ended")),
                std::string::npos)
          << outcome.message;
      EXPECT_NE(outcome.message.find("gradients"), std::string::npos) << outcome.message;
      EXPECT_EQ(outcome_from(ranks.next_line(rank)).rank, victim);
      EXPECT_EQ(ranks.next_line(rank), "of 3");
    }
  }
}

TEST(DyingRanks, AStoppedOneIsNamedAtTheDeadline) {
  const std::string job = own_job("stopped");
  ForkedRanks ranks(4, [&](int rank, const ForkedRanks::Say& say) {
    CommunicatorOptions options;
    options.deadline = 1.2;
    reduce_until_it_fails(*join(job, rank, 4, options), say);
  });
  ASSERT_EQ(ranks.all_say("ready"), "ready");
  sleep_for(0.01);
  const double stopped = os::seconds();
  ranks.signal(2, SIGSTOP);
  for (const int rank : {0, 1, 3}) {
    const Outcome outcome = next_blames(ranks, rank, Code::timeout, 2);
    EXPECT_GT(outcome.when - stopped, 1);
    EXPECT_LT(outcome.when - stopped, 1.7);
    EXPECT_NE(outcome.message.find("no sign of life for"), std::string::npos) << outcome.message;
  }
  ranks.signal(2, SIGCONT);  // it then gets the others' error
  next_blames(ranks, 2, Code::timeout, 2);
}

/// Rank 2 waits in a group without rank 0: only for the silence of that rank, or for any rank whose turn is late.
TEST(DyingRanks, AStoppedOneIsNamedByThoseThatWaitForAnotherThatWaitsForIt) {
  for (const bool waits_for_living : {false, true}) {
    ForkedRanks ranks(3, [&, job = own_job("chain")](int rank, const ForkedRanks::Say& say) {
      CommunicatorOptions long_options, options;
      options.deadline = 1.2;
      options.waits_for_living = waits_for_living;
      const auto group = join(job, rank, 3, long_options);
      const auto first = group->split(rank / 2, 0, long_options, true), second = group->split((rank + 1) / 2, 0, options, true);
      say("ready");
      float value = 0;
      if (rank == 0) sleep_for(20);
      say_outcome(say, [&] { (rank == 1 ? first : second)->receive(&value, 1, DType::f32, 0, "chain"); });
    });
    ASSERT_EQ(ranks.all_say("ready"), "ready");
    ranks.signal(0, SIGSTOP);
    for (const int rank : {1, 2}) {
      const Outcome outcome = outcome_from(ranks.next_line(rank));
      EXPECT_EQ(outcome.code, Code::timeout) << outcome.message;
      EXPECT_EQ(outcome.rank, 0) << outcome.message;
      EXPECT_NE(outcome.message.find("no sign of life for"), std::string::npos) << outcome.message;
    }
  }
}

TEST(DyingRanks, OneThatIsStoppedForAWhileIsWaitedFor) {
  const std::string job = own_job("continued");
  ForkedRanks ranks(3, [&](int rank, const ForkedRanks::Say& say) {
    CommunicatorOptions options;
    options.deadline = 2.5;
    const auto group = join(job, rank, 3, options);
    say("ready");
    const double end = os::seconds() + 2.4;
    say_outcome(say, [&] { reduce_on(*group, [&] { return os::seconds() > end; }); });
  });
  ASSERT_EQ(ranks.all_say("ready"), "ready");
  ranks.signal(1, SIGSTOP);
  sleep_for(1.2);  // longer than a busy machine delays a heartbeat
  ranks.signal(1, SIGCONT);
  sleep_for(0.1);
  for (int rank = 0; rank < 3; ++rank) ranks.signal(rank, SIGSTOP);  // all of them, as by ^Z
  sleep_for(0.3);
  for (int rank = 0; rank < 3; ++rank) ranks.signal(rank, SIGCONT);
  EXPECT_EQ(ranks.all_say("fine"), "fine");
}

}  // namespace
}  // namespace st
