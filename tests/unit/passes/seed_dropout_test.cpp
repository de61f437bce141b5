#include "passes/seed_dropout.h"

#include <gtest/gtest.h>

#include <map>

#include "models/gpt.h"
#include "passes/autodiff.h"
#include "passes/scale_loss.h"

namespace st {
namespace {

TEST(SeedDropout, EverySiteHasTheSeedAndItsOwnNumberInBackwardToo) {
  Program program = bind(build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 5, .vocabulary = 17, .dropout = 0.1}), 2);
  seed_dropout(program, 42);
  scale_loss(program, 1);
  autodiff(program);
  std::map<int64_t, std::map<Phase, int>> sites;
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes) {
      if (node.op != Op::dropout) continue;
      EXPECT_EQ(node.attrs.integer("seed"), 42);
      ++sites[node.attrs.integer("site")][section.phase];
    }
  EXPECT_EQ(sites.size(), 5U);  // after the embedding, and two a block
  for (const auto& [site, phases] : sites) {
    EXPECT_EQ(phases.at(Phase::forward), 1) << site;
    EXPECT_EQ(phases.at(Phase::backward), 1) << site;
  }
}

}  // namespace
}  // namespace st
