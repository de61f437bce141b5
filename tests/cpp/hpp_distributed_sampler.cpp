// scaletrain.hpp: which rows a rank reads next.
#include "sine_objects.h"

namespace {

using namespace scaletrain;
using test::thrown_status;

TEST(HppDistributedSampler, GivesTheRowsOfItsRankFromWhereItIsSet) {
  const DistributedSampler second(7, {1, 2, 3, true, LastRows::share});
  EXPECT_EQ(second.next(3).all, 6) << "of both ranks";
  EXPECT_EQ(second.cursor(), 6);
  EXPECT_TRUE(second.next(3).rows.empty()) << "the last row is the first rank's";

  const DistributedSampler alone(7, {0, 1, 0, false, LastRows::join});
  EXPECT_EQ(alone.next(3).rows, (std::vector<int64_t>{0, 1, 2}));
  alone.set_cursor(6);
  std::vector<int64_t> rows(4);
  const auto [own, all] = alone.next_to(view(rows));
  EXPECT_EQ(own, 4);
  EXPECT_EQ(all, 4);
  EXPECT_EQ(rows, (std::vector<int64_t>{6, 0, 1, 2}));
  alone.set_epoch(0);
  EXPECT_EQ(alone.next(1).rows, std::vector<int64_t>{0});
  EXPECT_EQ(thrown_status([&] { alone.next(0); }), Status::invalid_argument);
  std::vector<float> floats(4);
  EXPECT_EQ(thrown_status([&] { alone.next_to(view(floats)); }), Status::invalid_argument);
}

}  // namespace
