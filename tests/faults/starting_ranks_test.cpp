// Ranks that die while their group starts, and machines without room for it. In every case the next start works.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>

#include "base/digest.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "comm/local/shared_segment.h"
#include "forked_ranks.h"
#include "shared_job.h"

namespace st {
namespace {

namespace fs = std::filesystem;

/// Runs a group of this job from start to end.
std::string work_of(const std::string& job, int size) {
  ForkedRanks ranks(size, [&](int rank, const ForkedRanks::Say& say) {
    const auto group = join(job, rank, size);
    int32_t sum = rank;
    group->all_reduce(&sum, 1, DType::i32, ReduceOp::sum);
    say(text("sum ", sum));
  });
  return ranks.all_say(text("sum ", size * (size - 1) / 2));
}

/// Starts only the first `started` of `size` ranks; they wait for the others.
std::unique_ptr<ForkedRanks> some_of(const std::string& job, int started, int size, double patience = 20) {
  return std::make_unique<ForkedRanks>(started, [=](int rank, const ForkedRanks::Say& say) {
    say("starts");
    say_outcome(say, [&] { join(job, rank, size, {}, patience); });
  });
}

/// Returns once ranks 0 to `count` - 1 have joined and wait for the others.
void await_ranks(const std::string& job, int count) {
  Digest name;
  name.update(job);
  for (int rank = 0; rank < count;) {
    const auto segment = SharedSegment::open(name.hex());
    if (segment && !segment->host_of(rank).empty())
      ++rank;
    else
      sleep_for(0.001);
  }
}

TEST(StartingRanks, OneThatIsKilledAsItWaitsIsNamedAndTheNextStartWorks) {
  const std::string job = own_job("waits");
  const auto ranks = some_of(job, 3, 4);
  ASSERT_EQ(ranks->all_say("starts"), "starts");
  await_ranks(job, 3);
  const double killed = os::seconds();
  ranks->signal(1, SIGKILL);
  for (const int rank : {0, 2}) {
    const Outcome outcome = outcome_from(ranks->next_line(rank));
    EXPECT_EQ(outcome.code, Code::rank_failed) << outcome.message;
    EXPECT_EQ(outcome.rank, 1) << outcome.message;
    EXPECT_LT(outcome.when - killed, 1);
  }
  EXPECT_FALSE(fs::exists(path_of_segment(job)));
  EXPECT_EQ(work_of(job, 4), "sum 6");
}

TEST(StartingRanks, WhatAllLeftThatWereKilledAsTheyWaitedIsReplaced) {
  const std::string job = own_job("all");
  {
    const auto ranks = some_of(job, 3, 4);
    ASSERT_EQ(ranks->all_say("starts"), "starts");
    await_ranks(job, 3);
    for (int rank = 0; rank < 3; ++rank) ranks->signal(rank, SIGKILL);
  }
  EXPECT_EQ(fs::file_size(path_of_segment(job)), 4096);  // the rings are not allocated yet
  EXPECT_EQ(work_of(job, 2), "sum 1");                   // also with another size
  EXPECT_FALSE(fs::exists(path_of_segment(job)));
}

TEST(StartingRanks, WhatTheyLeftTheStartOfAnotherJobTakesAwayLater) {
  const std::string job = own_job("left");
  {
    const auto ranks = some_of(job, 2, 3);
    ASSERT_EQ(ranks->all_say("starts"), "starts");
    await_ranks(job, 2);
    SharedSegment::remove_leftovers(0);
    EXPECT_TRUE(fs::exists(path_of_segment(job))) << "they live";
    for (int rank = 0; rank < 2; ++rank) ranks->signal(rank, SIGKILL);
  }
  SharedSegment::remove_leftovers(60);
  EXPECT_TRUE(fs::exists(path_of_segment(job))) << "it may still be of use";
  sleep_for(0.3);
  SharedSegment::remove_leftovers(0.2);
  EXPECT_FALSE(fs::exists(path_of_segment(job)));
}

TEST(StartingRanks, ThatBeginAfterARefusalAreNotRefused) {
  const std::string job = own_job("refused");
  {
    ForkedRanks ranks(2, [&](int rank, const ForkedRanks::Say& say) { say_outcome(say, [&] { join(job, rank, 2 + rank); }); });
    for (const int rank : {0, 1}) EXPECT_EQ(outcome_from(ranks.next_line(rank)).code, Code::rank_mismatch);
  }
  EXPECT_TRUE(fs::exists(path_of_segment(job))) << "for rank 2 of them";
  EXPECT_EQ(work_of(job, 3), "sum 3");
  EXPECT_FALSE(fs::exists(path_of_segment(job)));
}

TEST(StartingRanks, AKillAtAnyMomentOfAStartLeavesNoHangAndNoFile) {
  std::random_device device;
  std::mt19937 random(device());
  const std::string job = own_job("any moment");
  for (int trial = 0; trial < 12; ++trial) {
    const double pause = static_cast<double>(random() % 4000) * 1e-6;
    const int victim = static_cast<int>(random() % 3);
    SCOPED_TRACE(text("rank ", victim, " is killed after ", pause, " s"));
    {
      const auto ranks = some_of(job, 3, 3, 0.4);
      sleep_for(pause);
      ranks->signal(victim, SIGKILL);
      for (int rank = 0; rank < 3; ++rank) {
        if (rank == victim) continue;
        ASSERT_EQ(ranks->next_line(rank), "starts");
        const std::string line = ranks->next_line(rank);
        if (line == "fine") continue;  // all had joined
        const Outcome outcome = outcome_from(line);
        if (outcome.code == Code::timeout) {  // it joined after the others had given up, and found nobody
          const std::string missing = outcome.message.substr(outcome.message.rfind(": ") + 2);
          EXPECT_NE(missing.substr(0, missing.find(';')).find(std::to_string(victim)), std::string::npos) << line;
        } else {
          EXPECT_EQ(outcome.code, Code::rank_failed) << line;
          EXPECT_EQ(outcome.rank, victim) << line;
        }
      }
    }
    EXPECT_EQ(work_of(job, 3), "sum 3");
  }
  EXPECT_FALSE(fs::exists(path_of_segment(job)));
}

/// The outcomes of two ranks in a mount namespace with such a /dev/shm.
std::vector<std::string> said_in(const char* options, unsigned long flags) {
  const std::string job = own_job("small");
  ForkedRanks ranks(1, [&](int, const ForkedRanks::Say& say) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/dev/shm", "tmpfs", flags, options) != 0)
      return say(text("skipped: no file system can be mounted here: ", os::reason_of(errno)));
    ForkedRanks pair(2, [&](int rank, const ForkedRanks::Say& tell) { say_outcome(tell, [&] { join(job, rank, 2); }); });
    say(pair.next_line(0));
    say(pair.next_line(1));
    say(fs::is_empty("/dev/shm") ? "nothing is left" : "something is left");
  });
  std::vector<std::string> said;
  for (int i = 0; i < 3; ++i) said.push_back(ranks.next_line(0));
  return said;
}

TEST(StartingRanks, AFullDevShmIsAnErrorOnAllOfThem) {
  const auto said = said_in("size=300k", 0);  // two rings of 256 KiB do not fit
  if (said[0].starts_with("skipped")) GTEST_SKIP() << said[0];
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome outcome = outcome_from(said[static_cast<size_t>(rank)]);
    EXPECT_EQ(outcome.code, Code::out_of_memory) << outcome.message;
    EXPECT_NE(outcome.message.find("No space left on device"), std::string::npos) << outcome.message;
    EXPECT_NE(outcome.message.find("/dev/shm"), std::string::npos) << outcome.message;
  }
  EXPECT_EQ(said[2], "nothing is left");
}

TEST(StartingRanks, ADevShmThatCannotBeWrittenIsSaidToBe) {
  const auto said = said_in("size=4m", MS_RDONLY);
  if (said[0].starts_with("skipped")) GTEST_SKIP() << said[0];
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome outcome = outcome_from(said[static_cast<size_t>(rank)]);
    EXPECT_EQ(outcome.code, Code::unavailable) << outcome.message;
    EXPECT_NE(outcome.message.find("Read-only file system"), std::string::npos) << outcome.message;
  }
}

}  // namespace
}  // namespace st
