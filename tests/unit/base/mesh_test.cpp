#include "base/mesh.h"

#include <gtest/gtest.h>

#include <vector>

#include "thrown_error.h"

namespace st {
namespace {

TEST(Mesh, LaysRanksOutByTensorThenDataThenStage) {
  const Mesh mesh{.data = 3, .tensor = 2, .stage = 2};
  EXPECT_EQ(position_of(mesh, 1), (MeshPosition{0, 1, 0}));
  EXPECT_EQ(position_of(mesh, 2), (MeshPosition{1, 0, 0}));
  EXPECT_EQ(position_of(mesh, 6), (MeshPosition{0, 0, 1}));
  EXPECT_EQ(position_of(mesh, 11), (MeshPosition{2, 1, 1}));
  for (int rank = 0; rank < mesh.ranks(); ++rank) EXPECT_EQ(rank_at(mesh, position_of(mesh, rank)), rank);
}

TEST(Mesh, GroupsRanksThatDifferInOneAxis) {
  const Mesh mesh{.data = 3, .tensor = 2, .stage = 2};
  const auto group_of = [&](MeshAxis axis, int rank) {
    std::vector<int> ranks;
    for (int other = 0; other < mesh.ranks(); ++other)
      if (color_along(mesh, axis, other) == color_along(mesh, axis, rank)) ranks.push_back(other);
    return ranks;
  };
  EXPECT_EQ(group_of(MeshAxis::tensor, 9), (std::vector<int>{8, 9}));
  EXPECT_EQ(group_of(MeshAxis::data, 9), (std::vector<int>{7, 9, 11}));
  EXPECT_EQ(group_of(MeshAxis::stage, 9), (std::vector<int>{3, 9}));
}

TEST(Mesh, ThatDoesNotMultiplyToTheRanksIsRefusedWithTheProduct) {
  EXPECT_TRUE(is_error(error_of([] { check_mesh({.data = 3, .tensor = 2, .stage = 1}, 8); }), Code::invalid_argument,
                       {"2 tensor x 3 data x 1 stage ranks are 6", "8 ranks"}));
  EXPECT_TRUE(is_error(error_of([] { check_mesh({.data = 3, .tensor = 0, .stage = 1}, 0); }), Code::invalid_argument, {"1 or more"}));
  check_mesh({.data = 2, .tensor = 2, .stage = 2}, 8);
}

}  // namespace
}  // namespace st
