// scaletrain.hpp: which rows a rank reads next.
#include <gtest/gtest.h>

#include <scaletrain.hpp>
#include <set>

namespace {

using namespace scaletrain;

TEST(HppDistributedSampler, SharesAnEpochAndGoesOn) {
  DistributedSamplerOptions options;
  options.size = 2;
  options.seed = 3;
  const DistributedSampler first(7, options);
  options.rank = 1;
  const DistributedSampler second(7, options);
  std::set<int64_t> read;
  for (const DistributedSampler* one : {&first, &second}) {
    const SampledRows rows = one->next(3);
    EXPECT_EQ(rows.rows.size(), 3U);
    EXPECT_EQ(rows.all, 6);
    read.insert(rows.rows.begin(), rows.rows.end());
    EXPECT_EQ(one->cursor(), 6);
  }
  EXPECT_EQ(first.next(3).rows.size(), 1U);
  EXPECT_TRUE(second.next(3).rows.empty());
  EXPECT_EQ(first.next(3).all, 0);
  EXPECT_EQ(read.size(), 6U);

  const DistributedSampler alone(7, {0, 1, 3, true, LastRows::join});
  alone.set_cursor(6);
  std::vector<int64_t> rows(4);
  const auto [own, all] = alone.next_to(view(rows));
  EXPECT_EQ(own, 4);
  EXPECT_EQ(all, 4);
  EXPECT_EQ(read.count(rows[0]), 0U) << "the one that was not read";
  alone.set_epoch(0);
  EXPECT_EQ(alone.next(7).rows[6], rows[0]);
  EXPECT_THROW(alone.next(0), Error);
  std::vector<float> floats(4);
  EXPECT_THROW(alone.next_to(view(floats)), Error);
}

}  // namespace
