// A kernel class as facts: a rank whose kernels differ is refused with the part that does.
#include "parts/kernel_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace st {
namespace {

TEST(KernelFacts, NameEachPartOfAKernelClass) {
  const auto value = [](const std::vector<RankFact>& facts, std::string_view name) -> std::string {
    const auto found = std::ranges::find(facts, name, &RankFact::name);
    return found == facts.end() ? "none of this name" : found->value;
  };
  const std::vector<RankFact> facts = kernel_facts("cuda sm_90a/132 own=1f table=none cublasLt=130100,1048576");
  ASSERT_EQ(facts.size(), 4U);
  EXPECT_EQ(facts.front().name, "kernels");
  EXPECT_EQ(facts.front().value, "cuda sm_90a/132");
  EXPECT_EQ(value(facts, "kernels: own"), "1f");
  EXPECT_EQ(value(facts, "kernels: table"), "none");
  EXPECT_EQ(value(facts, "kernels: cublasLt"), "130100,1048576");
}

}  // namespace
}  // namespace st
