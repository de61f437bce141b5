#include "base/glob.h"

#include <gtest/gtest.h>

namespace st {
namespace {

TEST(Glob, StarIsAnyTextAndQuestionMarkOneCharacter) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("block.*.mlp.*", "block.11.mlp.fc1.weight"));
  EXPECT_TRUE(matches_glob("block.?.mlp", "block.3.mlp"));
  EXPECT_TRUE(matches_glob("*.bias", "a.bias.bias"));
  EXPECT_TRUE(matches_glob("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(matches_glob("weight", "weight"));
  EXPECT_FALSE(matches_glob("", "a"));
  EXPECT_FALSE(matches_glob("block.?", "block."));
  EXPECT_FALSE(matches_glob("block.*", "blocks"));
  EXPECT_FALSE(matches_glob("*.bias", "bias"));
  EXPECT_FALSE(matches_glob("a*b", "a-c"));
}

}  // namespace
}  // namespace st
