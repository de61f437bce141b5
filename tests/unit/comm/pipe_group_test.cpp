#include "comm/pipes/pipe_group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/machine.h"
#include "base/text.h"
#include "comm/direct_exchange.h"
#include "comm/pipes/frame.h"
#include "every_group.h"
#include "memory_pipes.h"
#include "sanitized.h"
#include "thrown_error.h"

namespace st {
namespace {

std::unique_ptr<Transport> join(const std::shared_ptr<MemoryPipes>& pipes, int rank, double patience = 20) {
  return join_pipe_group(std::make_unique<MemoryPipesEnd>(pipes, rank), {.patience = patience, .is_cancelled = {}});
}

std::vector<std::unique_ptr<Transport>> joined(const std::shared_ptr<MemoryPipes>& pipes) {
  return ends_of_ranks(pipes->size(), [&](int rank) { return join(pipes, rank); });
}

// Shorter than a frame, so that frames arrive in parts.
std::vector<std::unique_ptr<Transport>> make_memory_group(int size) { return joined(std::make_shared<MemoryPipes>(size)); }

INSTANTIATE_TEST_SUITE_P(Pipes, EveryGroup, testing::Values(GroupKind{"pipes", make_memory_group}),
                         [](const auto& instance) { return instance.param.name; });

CommunicatorOptions with_deadline(double seconds) {
  CommunicatorOptions options;
  options.deadline = seconds;
  return options;
}

TEST(PipeGroup, ARankWhosePipesBreakIsNamedWithTheReason) {
  const auto pipes = std::make_shared<MemoryPipes>(3);
  Signal told;
  const auto outcomes = outcomes_of(joined(pipes), with_deadline(20), [&](Communicator& group) {
    group.barrier();
    if (group.rank() == 1) {
      pipes->cut(1);
      told.await(2);             // it is alive, but no rank can see that
      group.abort("they know");  // or its end would wait to tell the others
      return;
    }
    const RaisesAtEnd at_end(told);
    group.barrier("after the cut");
  });
  for (const size_t rank : {0U, 2U}) {
    const Error error = error_of(outcomes[rank]);
    EXPECT_TRUE(is_error(error, Code::rank_failed, {"the wire is cut"}));
    EXPECT_EQ(error.place.rank, 1) << error.message();
    EXPECT_EQ(error.place.host, text(os::host_name(), ", process ", os::process_id()));
  }
}

TEST(PipeGroup, ASilentRankIsBlamedAndNotTheOneThatIsWaitedFor) {
  const auto pipes = std::make_shared<MemoryPipes>(3);
  Signal is_over;
  const auto outcomes = outcomes_of(joined(pipes), with_deadline(1), [&](Communicator& group) {
    float value = 0;
    if (group.rank() == 2) pipes->stop(2);
    if (group.rank() != 0) {
      is_over.await();
      return group.abort("it is over");
    }
    const RaisesAtEnd at_end(is_over);
    group.receive(&value, 1, DType::f32, 1);
  });
  const Error error = error_of(outcomes[0]);
  EXPECT_TRUE(is_error(error, Code::timeout, {"no sign of life for"}));
  EXPECT_EQ(error.place.rank, 2) << error.message();
}

TEST(PipeGroup, AWindowIsFilledToItsLastByteWhereNothingIsTaken) {
  auto ends = joined(std::make_shared<MemoryPipes>(2));
  std::vector<std::byte> sent(5 << 20), got;
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i % 251);
  ends[0]->post(1, sent);
  while (got.size() < sent.size()) {
    for (bool moved = true; moved;) {
      moved = ends[0]->progress();
      moved = ends[1]->progress() || moved;
    }
    ASSERT_FALSE(ends[1]->failure()) << ends[1]->failure()->reason;
    const std::span<const std::byte> window = ends[1]->arrived(0);
    ASSERT_FALSE(window.empty());
    got.insert(got.end(), window.begin(), window.end());
    ends[1]->take(0, std::ssize(window));
  }
  EXPECT_EQ(got, sent);
}

TEST(PipeGroup, AnAbortReachesARankThatTakesNothing) {
  const auto outcomes = outcomes_of(make_memory_group(2), with_deadline(20), [&](Communicator& group) {
    std::vector<float> much(1 << 20);
    if (group.rank() == 0) {
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        group.abort("the host has had enough");
      });
      const auto thrown = caught_on_ranks(1, [&](int) {
        group.send(much.data(), std::ssize(much), DType::f32, 1);  // the other rank takes none of it
      });
      other.join();
      return rethrow_first(thrown);
    }
    while (!group.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    group.barrier();
  });
  for (const auto& outcome : outcomes) {
    const Error error = error_of(outcome);
    EXPECT_TRUE(is_error(error, Code::rank_failed, {"it has aborted: the host has had enough"}));
    EXPECT_EQ(error.place.rank, 0);
  }
}

TEST(PipeGroup, ALateRankIsWaitedForAndAMissingOneNamed) {
  const auto pipes = std::make_shared<MemoryPipes>(4);
  const auto outcomes = caught_on_ranks(4, [&](int rank) {
    if (rank != 2) join(pipes, rank, 0.5);
  });
  for (const size_t rank : {0U, 1U, 3U}) {
    const Error error = error_of(outcomes[rank]);
    EXPECT_TRUE(is_error(error, Code::timeout));
    EXPECT_EQ(error.place.rank, 2);
  }
}

/// Whether one of a few trials takes less time: a busy machine delays some of them, a bug delays all.
bool is_soon_once(double seconds, const std::function<double()>& took) {
  for (int trial = 0; trial < 8; ++trial)
    if (took() < seconds) return true;
  return false;
}

TEST(PipeGroup, AStartIsCancelledWithoutAWaitForThoseWhoHaveNotCome) {
  EXPECT_TRUE(is_soon_once(0.3, [] {
    const auto pipes = std::make_shared<MemoryPipes>(2);
    const double began = os::seconds();
    const Error error = error_of(
        [&] { join_pipe_group(std::make_unique<MemoryPipesEnd>(pipes, 0), {.patience = 60, .is_cancelled = [] { return true; }}); });
    EXPECT_TRUE(is_error(error, Code::cancelled));
    return os::seconds() - began;
  }));
}

TEST(PipeGroup, ALivingRankIsNotSilentThoughNobodyLooksAtIt) {
  const auto ends = make_memory_group(2);
  EXPECT_TRUE(is_soon_once(0.35, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));  // only the keeper threads poll the ends
    return ends[0]->silence_of(1);
  }));
  EXPECT_EQ(ends[0]->silence_of(0), 0);
}

TEST(PipeGroup, AnEndAfterAFailureIsSoon) {
  EXPECT_TRUE(is_soon_once(0.3, [] {
    std::atomic<double> longest{0};
    auto ends = make_memory_group(3);
    run_ranks(3, [&](int rank) {
      DirectExchange group(std::move(ends[static_cast<size_t>(rank)]), with_deadline(20));
      if (rank == 1) group.abort("enough");
      EXPECT_EQ(error_of([&] { group.barrier(); }).code(), Code::rank_failed);
      std::this_thread::sleep_for(std::chrono::milliseconds(40 * rank));  // the last rank finds no other
      const double began = os::seconds();
      { const DirectExchange gone(std::move(group)); }
      const double took = os::seconds() - began;
      for (double before = longest; before < took && !longest.compare_exchange_weak(before, took);) continue;
    });
    return longest.load();
  }));
}

TEST(PipeGroup, OneThatNeverCameIsNotWaitedForAtTheEnd) {
  EXPECT_TRUE(is_soon_once(0.45, [] {
    const auto pipes = std::make_shared<MemoryPipes>(2);
    const double began = os::seconds();
    EXPECT_TRUE(is_error(error_of([&] { join(pipes, 0, 0.1); }), Code::timeout));
    return os::seconds() - began;
  }));
}

/// The first message from rank 0 to rank 1.
std::vector<std::byte> hello_of_rank_0(MemoryPipes& pipes) {
  std::vector<std::byte> said(sizeof(FrameHeader) + sizeof(HelloFrame));
  for (size_t got = 0; got < said.size();) got += pipes.get(0, 1, std::span(said).subspan(got));
  return said;
}

TEST(PipeGroup, WhatARankSaysOfItselfIsShownAsFarAsItIsText) {
  const auto pipes = std::make_shared<MemoryPipes>(2);
  std::unique_ptr<Transport> end;
  std::thread joining([&] { end = join(pipes, 0); });
  std::vector<std::byte> said = hello_of_rank_0(*pipes);  // rank 1 sends the same with another host
  constexpr std::string_view kHost = "node7\xff\xfe, process 1";
  std::memcpy(said.data() + sizeof(FrameHeader) + offsetof(HelloFrame, host), kHost.data(), kHost.size() + 1);
  pipes->put(1, 0, said);
  joining.join();
  EXPECT_EQ(end->host_of(1), "node7");
  pipes->cut(1);  // or its end would wait for a rank that never answers
}

TEST(PipeGroup, ARankOfAnotherVersionIsRefusedWithBothVersions) {
  const auto pipes = std::make_shared<MemoryPipes>(2);
  Error error(Code::ok, "nothing was thrown");
  std::thread joining([&] { error = error_of([&] { join(pipes, 0); }); });
  std::vector<std::byte> said = hello_of_rank_0(*pipes);  // rank 1 sends the same with another version
  char* const version = reinterpret_cast<char*>(said.data() + sizeof(FrameHeader) + offsetof(HelloFrame, version));
  const std::string own = version;
  std::strcpy(version, "9.8.7");
  pipes->put(1, 0, said);
  joining.join();
  EXPECT_TRUE(is_error(error, Code::rank_mismatch,
                       {"rank 1 expects 2 ranks and runs version 9.8.7", "rank 0 expects 2 ranks and runs version " + own}));
  EXPECT_EQ(error.place.rank, 1);
}

TEST(PipeGroup, AnEndInAForkedChildGoesThoughItsThreadIsNotThere) {
  if (kThreadSanitized) GTEST_SKIP() << "it ends where a forked child detaches a thread that it does not have";
  auto ends = make_memory_group(2);
  const pid_t child = fork();
  if (child == 0) {
    ends.clear();
    _exit(0);
  }
  int status = -1;
  const double end = os::seconds() + 10;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (os::seconds() > end) kill(child, SIGKILL);  // it hangs
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(status, 0);
}

TEST(PipeGroup, NonsenseInAPipeIsAFailureAndNoCrash) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 10; ++trial) {
    const auto pipes = std::make_shared<MemoryPipes>(2);
    auto ends = joined(pipes);
    DirectExchange group(std::move(ends[0]), with_deadline(0.1));
    std::vector<std::byte> nonsense(4000);
    // Random words, some of them valid headers and lengths.
    for (size_t i = 0; i + 4 <= nonsense.size(); i += 4) {
      const auto word = static_cast<uint32_t>(trial % 2 == 0 ? 0x53545031 + random() % 9 : random() >> (random() % 32));
      std::memcpy(&nonsense[i], &word, 4);
    }
    pipes->put(1, 0, nonsense);
    const Error error = error_of([&] {
      for (;;) group.barrier();
    });
    EXPECT_TRUE(error.code() == Code::rank_failed || error.code() == Code::rank_mismatch || error.code() == Code::timeout)
        << error.message();
    EXPECT_EQ(error.place.rank, 1) << error.message();
  }
}

}  // namespace
}  // namespace st
