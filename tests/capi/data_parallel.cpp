// st_data_parallel: the result of a step on each rank. Sums are compared with a loop in rank order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "thread_ranks.h"

namespace {

using namespace st::test;

constexpr int64_t kLengths[] = {7, 300, 1, 64, 0, 1031};
constexpr size_t kGradients = std::size(kLengths);

float made_by(int rank, size_t gradient, int64_t element) {
  return std::sin(static_cast<float>(element * 7 + rank * 131) + static_cast<float>(gradient)) * 1e3F;
}

/// The gradients of one rank, and views of them.
struct OwnGradients {
  explicit OwnGradients(int rank) {
    for (size_t i = 0; i < kGradients; ++i) {
      names.push_back("w" + std::to_string(i));
      values.emplace_back(static_cast<size_t>(std::max<int64_t>(kLengths[i], 1)));
      fill(rank, i);
    }
    for (size_t i = 0; i < kGradients; ++i)
      views.push_back({names[i].c_str(), {ST_F32, 1, &kLengths[i], nullptr, values[i].data(), kLengths[i] * 4}});
  }
  void fill(int rank, size_t i) {
    for (size_t k = 0; k < values[i].size(); ++k) values[i][k] = made_by(rank, i, static_cast<int64_t>(k));
  }

  std::vector<std::string> names;
  std::vector<std::vector<float>> values;
  std::vector<st_named_view> views;
};

std::vector<float> due(int ranks, size_t gradient, bool mean) {
  std::vector<float> sum(static_cast<size_t>(kLengths[gradient]));
  for (size_t k = 0; k < sum.size(); ++k) {
    sum[k] = made_by(0, gradient, static_cast<int64_t>(k));
    for (int rank = 1; rank < ranks; ++rank) sum[k] += made_by(rank, gradient, static_cast<int64_t>(k));
    if (mean) sum[k] /= static_cast<float>(ranks);
  }
  return sum;
}

st_data_parallel_options options_of(st_reduce_op op, int64_t bucket_bytes) {
  auto options = filled(st_data_parallel_options_init);
  options.op = op;
  options.bucket_bytes = bucket_bytes;
  return options;
}

class DataParallels : public testing::TestWithParam<int> {};

TEST_P(DataParallels, HaveTheSumOfAllRanksWithAnyBucketAndOrder) {
  const ThreadRanks ranks(GetParam());
  for (const int64_t bucket : {1, 1500, 1 << 20})
    for (const st_reduce_op op : {ST_REDUCE_SUM, ST_REDUCE_MEAN})
      ranks.each([&](int rank, st_communicator* own) {
        OwnGradients gradients(rank);
        const auto options = options_of(op, bucket);
        const auto parallel = hold<HeldDataParallel>(st_data_parallel_create, own, kGradients, gradients.views.data(), &options);
        for (int step = 0; step < 2; ++step) {
          for (size_t k = 0; k < kGradients; ++k) {  // each rank in a different order
            const size_t i = (k * 5 + static_cast<size_t>(rank + step)) % kGradients;
            gradients.fill(rank, i);
            EXPECT_TRUE(works(st_data_parallel_gradient_ready(parallel, static_cast<int64_t>(i))));
          }
          EXPECT_TRUE(works(st_data_parallel_synchronize(parallel)));
          for (size_t i = 0; i < kGradients; ++i) {
            gradients.values[i].resize(static_cast<size_t>(kLengths[i]));
            EXPECT_EQ(gradients.values[i], due(ranks.size(), i, op == ST_REDUCE_MEAN)) << "bucket " << bucket << ", gradient " << i;
          }
        }
      });
}

/// Equals st_communicator_all_reduce of each gradient alone.
TEST_P(DataParallels, OfOtherTypesHaveTheBitsOfAllReduce) {
  const ThreadRanks ranks(GetParam());
  for (const st_dtype dtype : {ST_BF16, ST_F16, ST_F64})
    ranks.each([&](int rank, st_communicator* own) {
      const int64_t count = 403, width = dtype == ST_F64 ? 8 : 2;
      std::vector<uint16_t> bits[3], wanted[3];
      std::vector<st_named_view> views;
      for (size_t i = 0; i < 3; ++i) {
        for (int64_t k = 0; k < count * width / 2; ++k)  // numbers around 1, for either dtype
          bits[i].push_back(static_cast<uint16_t>(0x3C00 + (k * 37 + rank * 11 + static_cast<int64_t>(i)) % 255));
        wanted[i] = bits[i];
        const st_view alone = {dtype, 1, &count, nullptr, wanted[i].data(), count * width};
        EXPECT_TRUE(works(st_communicator_all_reduce(own, "alone", &alone, ST_REDUCE_MEAN, nullptr)));
        views.push_back({nullptr, {dtype, 1, &count, nullptr, bits[i].data(), count * width}});
      }
      const auto parallel = hold<HeldDataParallel>(st_data_parallel_create, own, 3, views.data(), nullptr);
      for (int64_t i = 2; i >= 0; --i) EXPECT_TRUE(works(st_data_parallel_gradient_ready(parallel, i)));
      EXPECT_TRUE(works(st_data_parallel_synchronize(parallel)));
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(bits[i], wanted[i]) << "dtype " << dtype << ", gradient " << i;
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DataParallels, testing::Range(1, 5));

TEST(DataParallel, NamesWhatIsReadyTwiceOrNotAtAllAndGoesOn) {
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    OwnGradients gradients(rank);
    const auto options = options_of(ST_REDUCE_SUM, 1);
    const auto parallel = hold<HeldDataParallel>(st_data_parallel_create, own, kGradients, gradients.views.data(), &options);
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_data_parallel_synchronize(parallel), {"6 of 6", "\"w0\""}));
    for (int64_t i = 5; i > 0; --i) EXPECT_TRUE(works(st_data_parallel_gradient_ready(parallel, i)));
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_data_parallel_gradient_ready(parallel, 3), {"gradient 3", "\"w3\"", "twice"}));
    const auto info = last_error();
    EXPECT_STREQ(info.tensor, "w3");
    for (const int64_t i : {int64_t{-1}, int64_t{6}})
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_parallel_gradient_ready(parallel, i), {"[0, 6)"}));
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_data_parallel_synchronize(parallel), {"1 of 6", "0, \"w0\"", "set the gradient to zero"}));
    EXPECT_TRUE(fails(ST_WRONG_STATE, st_data_parallel_no_sync(parallel, 1), {"already ready"}));
    EXPECT_TRUE(works(st_data_parallel_gradient_ready(parallel, 0)));
    EXPECT_TRUE(works(st_data_parallel_synchronize(parallel)));
    gradients.values[3].resize(64);
    EXPECT_EQ(gradients.values[3], due(2, 3, false));
  });
}

TEST(DataParallel, WithoutSyncLeavesGradientsAsTheyAre) {
  const ThreadRanks ranks(2);
  ranks.each([&](int rank, st_communicator* own) {
    OwnGradients gradients(rank);
    const auto before = gradients.values;
    int64_t sent = -1, later = -2;
    const auto parallel = hold<HeldDataParallel>(st_data_parallel_create, own, kGradients, gradients.views.data(), nullptr);
    EXPECT_TRUE(works(st_communicator_sent_bytes(own, &sent)));
    EXPECT_TRUE(works(st_data_parallel_no_sync(parallel, 1)));
    for (int times = 0; times < 2; ++times) EXPECT_TRUE(works(st_data_parallel_gradient_ready(parallel, 5)));
    EXPECT_TRUE(works(st_data_parallel_synchronize(parallel)));
    EXPECT_TRUE(works(st_communicator_sent_bytes(own, &later)));
    EXPECT_EQ(later, sent);
    EXPECT_EQ(gradients.values, before);
    EXPECT_TRUE(works(st_data_parallel_no_sync(parallel, 0)));
    for (int64_t i = 0; i < 6; ++i) EXPECT_TRUE(works(st_data_parallel_gradient_ready(parallel, i)));
    EXPECT_TRUE(works(st_data_parallel_synchronize(parallel)));
    EXPECT_TRUE(works(st_communicator_sent_bytes(own, &later)));
    EXPECT_EQ(later - sent, 4 * 1403) << "half of it goes to the other rank's sums, and half of the sums come back";
  });
}

TEST(DataParallel, RanksThatExchangeOtherThingsAreToldBothSides) {
  const ThreadRanks ranks(3);
  const auto refused = [&](auto change, std::initializer_list<std::string_view> words) {
    ranks.each([&](int rank, st_communicator* own) {
      OwnGradients gradients(rank);
      auto options = options_of(ST_REDUCE_MEAN, 4096);
      int64_t n = kGradients;
      if (rank == 2) change(gradients, options, n);
      HeldDataParallel parallel;
      EXPECT_TRUE(fails(ST_RANK_MISMATCH, st_data_parallel_create(own, n, gradients.views.data(), &options, parallel.out()), words));
    });
  };
  using Options = st_data_parallel_options;
  refused([](OwnGradients&, Options&, int64_t& n) { n = 5; }, {"rank 2", "has gradients: 5, rank 0 has 6"});
  refused([](OwnGradients&, Options& o, int64_t&) { o.op = ST_REDUCE_SUM; }, {"has op sum, rank 0 has mean"});
  refused([](OwnGradients&, Options& o, int64_t&) { o.bucket_bytes = 9; }, {"has bucket_bytes 9, rank 0 has 4096"});
  refused([](OwnGradients& g, Options&, int64_t&) { std::swap(g.views[1], g.views[3]); },
          {"has gradient 1 \"w3\", f32 of 64, rank 0 has \"w1\", f32 of 300", "1 more: gradient 3"});
  ranks.each([&](int rank, st_communicator* own) {  // the group still works
    OwnGradients gradients(rank);
    const auto parallel = hold<HeldDataParallel>(st_data_parallel_create, own, kGradients, gradients.views.data(), nullptr);
  });
}

TEST(DataParallel, ARankThatDoesNotComeIsNamed) {
  const ThreadRanks ranks(2, 200);
  ranks.each([&](int rank, st_communicator* own) {
    OwnGradients gradients(rank);
    const auto parallel = hold<HeldDataParallel>(st_data_parallel_create, own, kGradients, gradients.views.data(), nullptr);
    if (rank == 1) {
      EXPECT_TRUE(works(st_communicator_abort(own, "no more")));
      return;
    }
    for (int64_t i = 0; i < 6; ++i) EXPECT_TRUE(works(st_data_parallel_gradient_ready(parallel, i)));
    EXPECT_TRUE(fails(ST_RANK_FAILED, st_data_parallel_synchronize(parallel), {"rank 1", "no more"}));
  });
}

TEST(DataParallel, RefusesWhatItCannotExchange) {
  const ThreadRanks ranks(1);
  std::vector<float> values(8);
  const int64_t four = 4, strides[] = {2};
  HeldDataParallel parallel;
  const auto refused = [&](std::vector<st_named_view> views, std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT,
                      st_data_parallel_create(ranks[0], static_cast<int64_t>(views.size()), views.data(), nullptr, parallel.out()), words));
  };
  const st_named_view plain = {"w", {ST_F32, 1, &four, nullptr, values.data(), 16}};
  refused({}, {"n is 0"});
  refused({{"w", {ST_I32, 1, &four, nullptr, values.data(), 16}}}, {"\"w\" is i32"});
  refused({{"w", {ST_F32, 1, &four, strides, values.data(), 32}}}, {"has gaps"});
  refused({{"w", {ST_F32, 1, &four, nullptr, values.data(), 12}}}, {"needs 16 bytes"});
  refused({plain, {"v", {ST_F32, 1, &four, nullptr, values.data() + 3, 16}}}, {"share memory"});
  auto options = options_of(ST_REDUCE_MAX, 4);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_parallel_create(ranks[0], 1, &plain, &options, parallel.out()), {"op is 3"}));
  options = options_of(ST_REDUCE_SUM, 0);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_data_parallel_create(ranks[0], 1, &plain, &options, parallel.out()), {"bucket_bytes is 0"}));
}

}  // namespace
