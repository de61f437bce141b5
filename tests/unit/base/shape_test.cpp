#include "base/shape.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "base/dtype.h"
#include "base/philox.h"
#include "refusal.h"

namespace st {
namespace {

TEST(Shape, BindsTheBatchWhereItIsAMultiple) {
  const Shape shape = {-3, 64};
  EXPECT_TRUE(shape.is_symbolic());
  EXPECT_EQ(shape.bind(5), (Shape{15, 64}));
  EXPECT_EQ(shape.elements(), -192);
  EXPECT_FALSE(shape.bind(5).is_symbolic());
  EXPECT_EQ((Shape{2, 3, 4}).elements(1, 3), 12);
  EXPECT_EQ(Shape{}.elements(), 1);
}

TEST(Shape, RefusesWhatDoesNotFit) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_NE(refusal([&] { (Shape{big, big}).elements(); }).find("more elements than fit"), std::string::npos);
  EXPECT_NE(refusal([&] { (Shape{-big}).bind(big); }), "");
  EXPECT_NE(refusal([] { Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}); }), "");
}

TEST(Shape, BroadcastsAsNumpyDoes) {
  EXPECT_EQ(broadcast("add", {2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast("add", {4}, {2, 3, 4}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast("add", {}, {7}), (Shape{7}));
  const std::string message = refusal([] { broadcast("add", {2, 3}, {2, 4}); });
  EXPECT_EQ(message, "add: shapes [2, 3] and [2, 4] do not broadcast (dimension 1: 3 and 4)");
}

TEST(Shape, CountsNegativeAxesFromTheEnd) {
  EXPECT_EQ(normalize_axis("sum", -1, 3), 2);
  EXPECT_EQ(normalize_axis("sum", 0, 3), 0);
  EXPECT_NE(refusal([] { normalize_axis("sum", 3, 3); }), "");
  EXPECT_NE(refusal([] { normalize_axis("sum", -4, 3); }), "");
}

TEST(DType, IsNamedBothWays) {
  for (int32_t i = 1; i <= 8; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
    EXPECT_GT(bytes_of(dtype), 0);
    EXPECT_FALSE(is_floating(dtype) && is_integer(dtype));
  }
  EXPECT_NE(refusal([] { dtype_named("fp32"); }).find("use f32"), std::string::npos);
  EXPECT_NE(refusal([] { bytes_of(static_cast<DType>(9)); }), "");
}

TEST(Text, Joins) { EXPECT_EQ(text("rows ", 3, ", rate ", 0.5, ' ', true, Shape{2, 3}), "rows 3, rate 0.5 true[2, 3]"); }

TEST(Text, FindsTheWordThatWasMeant) {
  const std::vector<std::string> words = {"accumulate", "precision", "steps"};
  EXPECT_EQ(nearest("acumulate", words), "accumulate");
  EXPECT_EQ(nearest("step", words), "steps");
  EXPECT_EQ(nearest("zebra", words), "");
}

TEST(Philox, GivesThePublishedNumbers) {
  // kat_vectors of Random123, philox 4x32, 10 rounds.
  using Four = std::array<uint32_t, 4>;
  EXPECT_EQ((Philox{{0, 0}}({0, 0, 0, 0})), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ((Philox{{kOnes, kOnes}}({kOnes, kOnes, kOnes, kOnes})), (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ((Philox{{0xa4093822, 0x299f31d0}}({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344})),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KeepsKeysApart) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 100; ++seed)
    for (uint64_t site = 0; site < 100; ++site) keys.insert(mix(seed, site));
  EXPECT_EQ(keys.size(), 10000U);
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325U);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cU);  // the test vectors of FNV-1a
  EXPECT_EQ(uniform_of(0xffffffff), 1.0F - 0x1p-24F);
}

}  // namespace
}  // namespace st
