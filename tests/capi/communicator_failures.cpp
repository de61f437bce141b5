// Ranks that leave, abort, are cancelled, make another call or do not arrive: the errors on the other ranks.
#include <chrono>

#include "thread_ranks.h"

namespace {

using namespace st::test;

st_status reduce(st_communicator* own, const char* name, int64_t count = 100) {
  std::vector<float> values(static_cast<size_t>(count), 1);
  return st_communicator_all_reduce(own, name, Floats(ST_F32, values), ST_REDUCE_SUM, nullptr);
}

/// Checks the last error of this thread.
void expect_told(int rank, const char* collective, const char* tensor) {
  const auto info = last_error();
  EXPECT_EQ(info.rank, rank);
  EXPECT_STREQ(info.collective, collective);
  EXPECT_STREQ(info.tensor, tensor);
  ASSERT_NE(info.host, nullptr);
  EXPECT_NE(std::string(info.host), "");
}

TEST(CommunicatorFailures, AnAbortEndsAllWithItsReason) {
  const ThreadRanks ranks(3);
  ranks.each([&](int rank, st_communicator* own) {
    if (rank == 1) {
      EXPECT_TRUE(works(st_communicator_abort(own, "the disk is full")));
      EXPECT_TRUE(fails(ST_RANK_FAILED, reduce(own, "gradients"), {"the disk is full"}));
      return;
    }
    EXPECT_TRUE(fails(ST_RANK_FAILED, reduce(own, "gradients"), {"rank 1", "the disk is full", "all_reduce", "gradients"}));
    expect_told(1, "all_reduce", "gradients");
    EXPECT_TRUE(fails(ST_RANK_FAILED, st_communicator_barrier(own, "later", nullptr), {"rank 1", "the disk is full"}));
  });
}

TEST(CommunicatorFailures, AnAbortOfAnotherThreadEndsAWait) {
  const ThreadRanks ranks(2);
  std::thread waiting([&] { EXPECT_TRUE(fails(ST_RANK_FAILED, reduce(ranks[0], "g"), {"enough"})); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(works(st_communicator_abort(ranks[0], "enough")));
  waiting.join();
  EXPECT_TRUE(fails(ST_RANK_FAILED, reduce(ranks[1], "g"), {"rank 0", "enough"}));
}

TEST(CommunicatorFailures, ACancelEndsAWait) {
  const ThreadRanks ranks(2);
  std::atomic<bool> has_ended{false};
  std::thread waiting([&] {
    EXPECT_TRUE(fails(ST_CANCELLED, reduce(ranks[0], "g"), {"all_reduce"}));
    has_ended = true;
  });
  cancel_until(has_ended, ranks.context);
  waiting.join();
  EXPECT_TRUE(fails(ST_RANK_FAILED, reduce(ranks[1], "g"), {"rank 0", "cancel"})) << "started after the cancel";
}

TEST(CommunicatorFailures, AnotherCallOnAHandleInUseIsBusy) {
  const ThreadRanks ranks(2);
  int64_t bytes = 0;
  int32_t number = 0;
  std::thread waiting([&] {
    st_status status = ST_BUSY;  // set by the call below
    while (status == ST_BUSY) status = st_communicator_barrier(ranks[0], nullptr, nullptr);
    EXPECT_TRUE(works(status));
  });
  st_status status = ST_OK;
  while (status == ST_OK) status = st_communicator_sent_bytes(ranks[0], &bytes);
  EXPECT_TRUE(fails(ST_BUSY, status, {"st_communicator_sent_bytes", "another call on this handle is running"}));
  EXPECT_TRUE(fails(ST_BUSY, reduce(ranks[0], "g")));
  EXPECT_TRUE(fails(ST_BUSY, st_communicator_destroy(ranks[0])));
  EXPECT_TRUE(works(st_communicator_rank(ranks[0], &number)));
  EXPECT_TRUE(works(st_communicator_barrier(ranks[1], nullptr, nullptr)));
  waiting.join();
}

}  // namespace
