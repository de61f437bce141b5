// Ranks that communicate through the host's own functions.
#include <barrier>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "socket_pipes.h"
#include "thread_ranks.h"

namespace {

using namespace st::test;

st_transport_callbacks socket_callbacks() {
  auto made = filled(st_transport_callbacks_init);
  SocketPipes::fill(made);
  return made;
}

/// A rank on a thread, with its own context.
struct HostedRank {
  HostedRank() { EXPECT_TRUE(works(st_context_create(nullptr, context.out()))); }
  st_status join(SocketPipes& pipes, int32_t rank, int64_t milliseconds = 20000) {
    const auto callbacks = socket_callbacks();
    auto options = filled(st_communicator_options_init);
    options.start_milliseconds = options.deadline_milliseconds = milliseconds;
    return st_communicator_callbacks(context, rank, pipes.size(), &callbacks, pipes.user(rank), &options, communicator.out());
  }
  HeldContext context;
  HeldCommunicator communicator;
};

void on_each(SocketPipes& pipes, const std::function<void(int, HostedRank&)>& act) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < pipes.size(); ++rank)
    threads.emplace_back([&, rank] {
      HostedRank own;
      ASSERT_TRUE(works(own.join(pipes, rank)));
      act(rank, own);
    });
  for (std::thread& thread : threads) thread.join();
}

/// A rank's contribution: sums depend on the order.
std::vector<float> carried_values(int rank) {
  std::vector<float> values(70001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(rank + 1) / static_cast<float>(i % 977 + 3);
  return values;
}

TEST(CallbackRanks, HaveTheBitsOfThreads) {
  for (const int size : {1, 2, 3, 5}) {
    std::vector<float> wanted;
    ThreadRanks(size).each([&](int rank, st_communicator* own) {
      std::vector<float> values = carried_values(rank);
      EXPECT_TRUE(works(st_communicator_all_reduce(own, "g", Floats(ST_F32, values), ST_REDUCE_SUM, nullptr)));
      if (rank == 0) wanted = values;
    });
    SocketPipes pipes(size);
    on_each(pipes, [&](int rank, HostedRank& own) {
      std::vector<float> values = carried_values(rank);
      EXPECT_TRUE(works(st_communicator_all_reduce(own.communicator, "g", Floats(ST_F32, values), ST_REDUCE_SUM, nullptr)));
      EXPECT_EQ(values, wanted);
      std::vector<float> told(5, static_cast<float>(rank));
      EXPECT_TRUE(works(st_communicator_broadcast(own.communicator, "b", Floats(ST_F32, told), size - 1, nullptr)));
      EXPECT_EQ(told, std::vector<float>(5, static_cast<float>(size - 1)));
      EXPECT_TRUE(works(st_communicator_barrier(own.communicator, "end", nullptr)));
    });
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(pipes.released(rank), 1);
  }
}

TEST(CallbackRanks, ThatBreakAreNamedWithTheHostsReason) {
  SocketPipes pipes(3);
  std::barrier<> all_have_left(3);  // a rank may leave a barrier of the group while another still reads in it
  on_each(pipes, [&](int rank, HostedRank& own) {
    EXPECT_TRUE(works(st_communicator_barrier(own.communicator, "whole", nullptr)));
    all_have_left.arrive_and_wait();
    if (rank == 1) return pipes.cut(1);
    std::vector<float> values = carried_values(rank);
    EXPECT_TRUE(fails(ST_RANK_FAILED, st_communicator_all_reduce(own.communicator, "g", Floats(ST_F32, values), ST_REDUCE_SUM, nullptr),
                      {"rank 1", "socket was closed", "all_reduce"}));
    const auto info = last_error();
    EXPECT_EQ(info.rank, 1);
  });
}

TEST(CallbackRanks, ThatDoNotComeAreNamedAndNothingIsReleased) {
  SocketPipes pipes(3);
  HostedRank own;
  EXPECT_TRUE(fails(ST_TIMEOUT, own.join(pipes, 1, 50), {": 0, 2"}));
  EXPECT_EQ(pipes.released(1), 0);
}

TEST(CallbackRanks, ThatAreWaitedForAtTheStartAreNoLongerByACancel) {
  SocketPipes pipes(2);
  HostedRank own;
  std::atomic<bool> has_ended{false};
  std::thread waiting([&] {
    EXPECT_TRUE(fails(ST_CANCELLED, own.join(pipes, 0), {"cancelled"}));
    has_ended = true;
  });
  cancel_until(has_ended, own.context);
  waiting.join();
  EXPECT_EQ(pipes.released(0), 0);
}

TEST(CallbackRanks, AreRefusedWithoutTheirFunctionsOrPlace) {
  SocketPipes pipes(2);
  HeldCommunicator made;
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  auto callbacks = socket_callbacks();
  const auto join = [&](int32_t rank, int32_t size) {
    return st_communicator_callbacks(context, rank, size, &callbacks, pipes.user(0), nullptr, made.out());
  };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join(-1, 2), {"rank is -1", "0 to 1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join(2, 2), {"rank is 2", "0 to 1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join(0, 0), {"size is 0", "1 to 4096"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join(0, 4097), {"size is 4097"}));
  callbacks.read = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join(0, 2), {"callback read", "NULL"}));
  callbacks.struct_size = 3;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join(0, 2), {"struct_size is 3", "_init"}));
  EXPECT_TRUE(
      fails(ST_INVALID_ARGUMENT, st_communicator_callbacks(context, 0, 2, nullptr, nullptr, nullptr, made.out()), {"callbacks is NULL"}));
  EXPECT_EQ(pipes.released(0), 0);
  EXPECT_EQ(static_cast<st_communicator*>(made), nullptr);
}

TEST(CallbackRanks, ThatSayTheyMovedTooMuchEndTheGroupAndHarmNothing) {
  SocketPipes pipes(2);
  std::thread other([&] {
    HostedRank own;
    EXPECT_FALSE(own.join(pipes, 1) == ST_OK && st_communicator_barrier(own.communicator, nullptr, nullptr) == ST_OK);
  });
  HostedRank own;
  auto callbacks = socket_callbacks();
  callbacks.read = [](void*, int32_t, void*, int64_t bytes, int64_t* given) -> st_status {
    *given = bytes + 1;
    return ST_OK;
  };
  EXPECT_TRUE(fails(ST_RANK_FAILED,
                    st_communicator_callbacks(own.context, 0, 2, &callbacks, pipes.user(0), nullptr, own.communicator.out()),
                    {"callback read", "must report 0 to"}));
  pipes.cut(0);
  other.join();
}

TEST(HostsGroup, NeedsAPluginOfThatName) {
  HeldCommunicator made;
  const auto context = hold<HeldContext>(st_context_create, nullptr);
  setenv("SCALETRAIN_PLUGINS", "/nowhere", 1);
  EXPECT_TRUE(fails(ST_UNAVAILABLE, st_communicator_host(context, "mpi", nullptr, nullptr, made.out()),
                    {"transport mpi", "/nowhere/libscaletrain_mpi.so", "share/scaletrain/mpi -B mpi-build", "cmake --install mpi-build"}));
  EXPECT_TRUE(fails(ST_UNAVAILABLE, st_communicator_host(context, "nosuch", nullptr, nullptr, made.out()), {"local, gloo and mpi"}));
  unsetenv("SCALETRAIN_PLUGINS");
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_host(context, "../mpi", nullptr, nullptr, made.out()), {"../mpi"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_host(context, nullptr, nullptr, nullptr, made.out()), {"transport is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_host(context, "mpi", nullptr, nullptr, nullptr), {"communicator is NULL"}));
}

}  // namespace
