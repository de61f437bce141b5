// Calls that a communicator refuses before anything is exchanged, so that the group continues.
#include <deque>

#include "thread_ranks.h"

namespace {

using namespace st::test;

class CommunicatorRefusals : public testing::Test {
 protected:
  CommunicatorRefusals() : ranks(2), own(ranks[0]) {}
  /// The group still works, and the arrays are unchanged.
  void TearDown() override {
    EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
    ranks.each([&](int, st_communicator* one) { EXPECT_TRUE(works(st_communicator_barrier(one, nullptr, nullptr))); });
  }
  st_view view(int64_t count, int64_t first = 0) {
    dims.push_back(count);
    return {ST_F32, 1, &dims.back(), nullptr, values.data() + first, count * 4};
  }
  st_status reduce(const st_view& array, st_reduce_op op = ST_REDUCE_SUM) {
    return st_communicator_all_reduce(own, "g", &array, op, nullptr);
  }

  ThreadRanks ranks;
  st_communicator* own;
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  std::deque<int64_t> dims;  // of all views
};

TEST_F(CommunicatorRefusals, OfViews) {
  st_view array = view(4);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_reduce(own, nullptr, nullptr, ST_REDUCE_SUM, nullptr), {"view", "NULL"}));
  array.dtype = ST_BOOL;
  array.bytes = 4;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, reduce(array), {"st_communicator_all_reduce", "bool", "ST_U8"}));
  array.dtype = 77;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, reduce(array), {"77"}));
  array = view(4);
  array.bytes = 15;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, reduce(array), {"16 bytes", "15"}));
  array = view(4);
  array.data = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, reduce(array), {"NULL"}));
  array = view(2);
  const int64_t stride = 2;
  array.strides = &stride;
  array.bytes = 12;
  EXPECT_TRUE(fails(ST_UNSUPPORTED, reduce(array), {"gaps", "copy"}));
  array = view(2);
  array.data = reinterpret_cast<char*>(values.data()) + 1;
  EXPECT_TRUE(fails(ST_UNSUPPORTED, reduce(array), {"aligned", "copy"}));
}

TEST_F(CommunicatorRefusals, OfOpsAndRanks) {
  const st_view array = view(4);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, reduce(array, 0), {"op is 0", "ST_REDUCE_SUM"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, reduce(array, 5), {"op is 5", "ST_REDUCE_MIN"}));
  st_view integers = array;
  integers.dtype = ST_I32;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, reduce(integers, ST_REDUCE_MEAN), {"mean", "i32"}));
  for (const int32_t rank : {-1, 2}) {
    const std::string number = std::to_string(rank);
    EXPECT_TRUE(
        fails(ST_INVALID_ARGUMENT, st_communicator_broadcast(own, nullptr, &array, rank, nullptr), {"root is " + number, "0 to 1"}));
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_send(own, nullptr, &array, rank, nullptr), {"to is " + number, "0 to 1"}));
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_receive(own, nullptr, &array, rank, nullptr), {"from is " + number, "0 to 1"}));
  }
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_send(own, nullptr, &array, 0, nullptr), {"to is 0", "this rank"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_receive(own, nullptr, &array, 0, nullptr), {"from is 0", "this rank"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_reduce(own, "\xff", &array, ST_REDUCE_SUM, nullptr), {"name", "UTF-8"}));
}

TEST_F(CommunicatorRefusals, OfTwoArraysThatDoNotFit) {
  const st_view whole = view(5), wrong = view(2), inside = view(3, 1);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_reduce_scatter(own, nullptr, &whole, &wrong, ST_REDUCE_SUM, nullptr),
                    {"\"own\" has 2", "rank 0", "5", "is 3"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_gather(own, nullptr, &wrong, &whole, nullptr), {"\"own\" has 2", "is 3"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_reduce_scatter(own, nullptr, &whole, &inside, ST_REDUCE_SUM, nullptr),
                    {"is inside", "element 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_gather(own, nullptr, &inside, &whole, nullptr), {"is inside", "element 0"}));
  st_view other = inside;
  other.dtype = ST_I32;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_gather(own, nullptr, &other, &whole, nullptr), {"i32", "f32"}));
  const st_view two = view(2), next = view(2, 2), three = view(3, 3), overlapping = view(2, 1);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_to_all(own, nullptr, &two, &three, nullptr), {"has 2", "has 3"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_to_all(own, nullptr, &three, &three, nullptr), {"multiple of the 2 ranks"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_to_all(own, nullptr, &two, &overlapping, nullptr), {"share memory"}));
  other = next;
  other.dtype = ST_I32;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_all_to_all(own, nullptr, &two, &other, nullptr), {"f32", "i32"}));
}

TEST_F(CommunicatorRefusals, OfQuestions) {
  int64_t begin = 0, count = 0;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_share(own, -1, 0, &begin, &count), {"elements is -1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_share(own, 1, 2, &begin, &count), {"rank is 2", "0 to 1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_share(own, 1, 0, nullptr, &count), {"begin is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_share(own, 1, 0, &begin, nullptr), {"count is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_rank(own, nullptr), {"rank is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_size(own, nullptr), {"size is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_sent_bytes(own, nullptr), {"bytes is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_flight_record(own, nullptr), {"json is NULL"}));
}

TEST_F(CommunicatorRefusals, OfNumbersOfRanksAndTimes) {
  st_communicator* made[2] = {};
  for (const int32_t n : {-1, 0, 257, INT32_MAX})
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_local(ranks.context, n, nullptr, made), {"n is " + std::to_string(n), "256"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_local(ranks.context, 2, nullptr, nullptr), {"comms is NULL"}));
  auto options = filled(st_communicator_options_init);
  EXPECT_EQ(options.deadline_milliseconds, 60000);
  EXPECT_EQ(options.start_milliseconds, 60000);
  options.deadline_milliseconds = 0;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_local(ranks.context, 2, &options, made), {"deadline_milliseconds is 0"}));
  options.deadline_milliseconds = 1;
  options.start_milliseconds = -5;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_local(ranks.context, 2, &options, made), {"start_milliseconds is -5"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_split(ranks[0], -1, 0, nullptr, made), {"color is -1", "0 or more"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_split(ranks[0], 0, 0, nullptr, nullptr), {"group is NULL"}));
  options.deadline_milliseconds = -1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_duplicate(ranks[0], &options, made), {"deadline_milliseconds is -1"}));
  EXPECT_EQ(made[0], nullptr);
}

TEST_F(CommunicatorRefusals, OfProcesses) {
  HeldCommunicator made;
  const auto join = [&](const char* job, int32_t rank, int32_t size) {
    return st_communicator_processes(ranks.context, job, rank, size, nullptr, made.out());
  };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join(nullptr, 0, 1), {"job is NULL"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join("", 0, 1), {"job is empty"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join("j", 0, 0), {"size is 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join("j", 0, INT32_MAX), {"1 to 1024 ranks"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join("j", -1, 2), {"rank is -1", "0 to 1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, join("j", 2, 2), {"rank is 2", "0 to 1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_communicator_processes(ranks.context, "j", 0, 1, nullptr, nullptr), {"communicator is NULL"}));
  EXPECT_EQ(static_cast<st_communicator*>(made), nullptr);
}

}  // namespace
