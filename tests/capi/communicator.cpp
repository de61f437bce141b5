// Collectives as a host calls them: the result on each rank. Sums are compared with a loop in rank order. Other types at 1 to 8 ranks:
// tests/unit/comm/collectives_test.cpp; a call of each collective: communicator_pending.cpp.
#include <cmath>
#include <cstring>

#include "thread_ranks.h"

namespace {

using namespace st::test;

constexpr int kMostRanks = 5;
constexpr int64_t kOdd = 1003;  // a multiple of 1 only

/// The contribution of rank r: numbers whose sum depends on the order.
std::vector<float> brought(int rank, int64_t count = kOdd) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * 7 + static_cast<size_t>(rank) * 131)) * 1e3F;
  return values;
}

std::vector<float> summed(int ranks, int64_t count = kOdd) {
  std::vector<float> sum = brought(0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<float> next = brought(rank, count);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += next[i];
  }
  return sum;
}

class Communicators : public testing::TestWithParam<int> {
 protected:
  int n() const { return GetParam(); }
  ThreadRanks ranks{GetParam()};
};

TEST_P(Communicators, KnowTheirRankSizeAndShares) {
  ranks.each([&](int rank, st_communicator* own) {
    int32_t number = -1, size = -1;
    EXPECT_TRUE(works(st_communicator_rank(own, &number)));
    EXPECT_TRUE(works(st_communicator_size(own, &size)));
    EXPECT_EQ(number, rank);
    EXPECT_EQ(size, n());
  });
  for (const int64_t elements : {int64_t{0}, int64_t{1}, int64_t{12}, kOdd}) {
    int64_t end = 0;
    for (int32_t rank = 0; rank < n(); ++rank) {
      int64_t begin = -1, count = -1;
      ASSERT_TRUE(works(st_communicator_share(ranks[0], elements, rank, &begin, &count)));
      EXPECT_EQ(begin, end);
      EXPECT_EQ(count, elements / n() + (rank < elements % n() ? 1 : 0));
      end = begin + count;
    }
    EXPECT_EQ(end, elements);
  }
}

/// Rank r contributes r + 1, written in the type's own bits by `made`.
template <class T, class Make>
void expect_reduced(const ThreadRanks& ranks, st_dtype dtype, const Make& made) {
  const int n = ranks.size();
  struct {
    st_reduce_op op;
    double value;
  } const cases[] = {{ST_REDUCE_SUM, n * (n + 1) / 2.0}, {ST_REDUCE_MAX, n * 1.0}, {ST_REDUCE_MIN, 1}, {ST_REDUCE_MEAN, (n + 1) / 2.0}};
  for (const auto& [op, value] : cases) {
    if (op == ST_REDUCE_MEAN && dtype >= ST_I32) continue;
    ranks.each([&, op = op, value = value](int rank, st_communicator* own) {
      std::vector<T> values(37, made(rank + 1));
      EXPECT_TRUE(works(st_communicator_all_reduce(own, nullptr, Array<T>(dtype, values), op, nullptr)));
      EXPECT_EQ(values, std::vector<T>(37, made(value))) << "dtype " << dtype << ", op " << op << ", rank " << rank;
    });
  }
}

TEST_P(Communicators, ReduceByEveryOp) {
  expect_reduced<float>(ranks, ST_F32, [](double k) { return static_cast<float>(k); });
  expect_reduced<int64_t>(ranks, ST_I64, [](double k) { return static_cast<int64_t>(k); });
}

TEST_P(Communicators, ScatterAndGatherWhereTheArrayLies) {
  const std::vector<float> wanted = summed(n());
  ranks.each([&](int rank, st_communicator* own) {
    std::vector<float> whole = brought(rank);
    int64_t begin = 0, count = 0;
    EXPECT_TRUE(works(st_communicator_share(own, kOdd, rank, &begin, &count)));
    const st_view share = {ST_F32, 1, &count, nullptr, whole.data() + begin, count * 4};
    EXPECT_TRUE(works(st_communicator_reduce_scatter(own, nullptr, Floats(ST_F32, whole), &share, ST_REDUCE_SUM, nullptr)));
    EXPECT_TRUE(works(st_communicator_all_gather(own, nullptr, &share, Floats(ST_F32, whole), nullptr)));
    EXPECT_EQ(whole, wanted);
  });
}

TEST_P(Communicators, CountWhatTheySendAndRecordWhatTheyDid) {
  ranks.each([&](int rank, st_communicator* own) {
    std::vector<float> values = brought(rank, 60000);  // a multiple of 1 to 5, and too large to be sent whole
    int64_t bytes = -1;
    const char* json = nullptr;
    EXPECT_TRUE(works(st_communicator_all_reduce(own, "bucket.3", Floats(ST_F32, values), ST_REDUCE_MAX, nullptr)));
    EXPECT_TRUE(works(st_communicator_sent_bytes(own, &bytes)));
    EXPECT_EQ(bytes, 2 * 240000 * (n() - 1) / n());
    EXPECT_TRUE(works(st_communicator_flight_record(own, &json)));
    for (const char* word : {"all_reduce", "bucket.3", "\"elements\":60000", "\"f32\"", "\"max\""})
      EXPECT_NE(std::string(json).find(word), std::string::npos) << word << " in " << json;
  });
}

TEST_P(Communicators, SplitAndDuplicateIntoGroupsWithTheirOwnOrder) {
  std::vector<float> wanted = brought(n() - 1);
  for (int rank = n() - 2; rank >= 0; --rank) {
    const std::vector<float> next = brought(rank);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += next[i];
  }
  ranks.each([&](int rank, st_communicator* own) {
    auto options = filled(st_communicator_options_init);
    options.allow_single = 1;
    HeldCommunicator reversed, twin, refused;
    ASSERT_TRUE(works(st_communicator_split(own, 7, -rank, &options, reversed.out())));
    ASSERT_TRUE(works(st_communicator_duplicate(reversed, nullptr, twin.out())));
    std::vector<float> sum = brought(rank);
    EXPECT_TRUE(works(st_communicator_all_reduce(twin, "sum", Floats(ST_F32, sum), ST_REDUCE_SUM, nullptr)));
    EXPECT_EQ(std::memcmp(sum.data(), wanted.data(), sum.size() * sizeof(float)), 0);
    int32_t number = -1;
    EXPECT_TRUE(works(st_communicator_rank(twin, &number)));
    EXPECT_EQ(number, n() - 1 - rank);
    if (n() == 1) return;
    EXPECT_TRUE(
        fails(ST_RANK_MISMATCH, st_communicator_split(twin, number == 1 ? 5 : 3, 0, nullptr, refused.out()), {"alone", "allow_single"}));
    EXPECT_TRUE(works(st_communicator_barrier(twin, nullptr, nullptr)));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Communicators, testing::Range(1, kMostRanks + 1));

}  // namespace
