#include "passes/recompute_choice.h"

#include <limits>

#include "passes/fuse.h"
#include "passes/recompute.h"
#include "passes/recompute_scopes.h"
#include "refusal.h"
#include "sanitized.h"
#include "scoped_program.h"
#include "small_program.h"

namespace st {
namespace {

/// The bytes of a program's activations on a backend without workspace.
class Measured {
 public:
  explicit Measured(const Program& program) : program_(program) {}

  int64_t bytes(std::span<const RegionId> scopes) const {
    Program copy = program_;
    recompute(copy, scopes);
    fuse(copy);
    const MemoryLayout memory = memory_without_workspace(copy);
    return memory.of(Arena::activations) + memory.of(Arena::stash);
  }
  double weight(std::span<const RegionId> scopes) const {
    Program copy = program_;
    return recompute(copy, scopes).cost().weight();
  }
  std::vector<RegionId> chosen(int64_t budget) const {
    const auto planned = [this](std::span<const RegionId> scopes) { return bytes(scopes); };
    return scopes_that_fit(program_, budget, planned, planned);
  }

  /// A choice: each outermost scope is kept, recomputed, or recomputed in some of the scopes directly in it.
  struct Point {
    int64_t bytes;
    double weight;
  };
  std::vector<Point> all() const {
    std::vector<std::vector<RegionId>> choices = {{}};
    for (const RegionId outer : outermost_scopes(program_)) {
      std::vector<std::vector<RegionId>> ways = {{}, {outer}};
      const auto inner = scopes_directly_in(program_, outer);
      for (uint32_t members = 1; members < 1U << inner.size(); ++members) {
        auto& way = ways.emplace_back();
        for (size_t i = 0; i < inner.size(); ++i)
          if ((members >> i & 1) != 0) way.push_back(inner[i]);
      }
      std::vector<std::vector<RegionId>> longer;
      for (const auto& choice : choices)
        for (const auto& way : ways) {
          auto& made = longer.emplace_back(choice);
          made.insert(made.end(), way.begin(), way.end());
        }
      choices = std::move(longer);
    }
    std::vector<Point> points;
    for (const auto& choice : choices) points.push_back({bytes(choice), weight(choice)});
    return points;
  }

 private:
  const Program& program_;
};

double cheapest_of(const std::vector<Measured::Point>& points, int64_t budget) {
  double cheapest = std::numeric_limits<double>::infinity();
  for (const auto& point : points)
    if (point.bytes <= budget) cheapest = std::min(cheapest, point.weight);
  return cheapest;
}

TEST(RecomputeChoice, IsTheCheapestOfAllThatFitOnSmallGraphs) {
  int recomputing = 0;
  constexpr uint64_t kSeeds = kSanitized ? 8 : 24;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Program program = with_backward(bind(scoped_program(seed, 3), 40));
    const Measured measured(program);
    const auto points = measured.all();
    const int64_t least = std::ranges::min(points, {}, &Measured::Point::bytes).bytes, most = measured.bytes({});
    for (const int part : {0, 1, 2, 3, 4}) {
      const int64_t budget = least + (most - least) * part / 4;
      const auto scopes = measured.chosen(budget);
      EXPECT_LE(measured.bytes(scopes), budget) << "seed " << seed;
      EXPECT_EQ(measured.weight(scopes), cheapest_of(points, budget)) << "seed " << seed << ", budget " << budget;
      recomputing += scopes.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(recomputing, kSanitized ? 12 : 60);
}

// Too many choices to plan each. Blocks are equal, so only the number of blocks per treatment matters.
TEST(RecomputeChoice, IsTheCheapestOfAllThatFitOnAGptOfManyBlocks) {
  constexpr int64_t kLayers = kSanitized ? 4 : 6;
  const Program program = with_backward(bind(build_gpt({.layers = kLayers, .width = 24, .heads = 3, .context = 16, .vocabulary = 31}), 4));
  const Measured measured(program);
  std::vector<std::vector<RegionId>> ways = {{}};
  const auto add_way = [&](const std::string& policy) { ways.push_back(scopes_to_recompute(program, policy)); };
  add_way("block.?.attention");
  add_way("block.?.mlp");
  add_way("block.?");
  std::vector<Measured::Point> points;
  for (int64_t attention = 0; attention <= kLayers; ++attention)
    for (int64_t mlp = 0; attention + mlp <= kLayers; ++mlp)
      for (int64_t both = 0; attention + mlp + both <= kLayers; ++both)
        for (int64_t whole = 0; attention + mlp + both + whole <= kLayers; ++whole) {
          std::vector<RegionId> scopes;
          const auto take = [&](size_t way, int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) scopes.push_back(ways[way][static_cast<size_t>(i)]);
          };
          take(1, 0, attention + both);
          take(2, attention, attention + both + mlp);
          take(3, attention + both + mlp, attention + both + mlp + whole);
          points.push_back({measured.bytes(scopes), measured.weight(scopes)});
        }
  const int64_t least = std::ranges::min(points, {}, &Measured::Point::bytes).bytes, most = measured.bytes({});
  EXPECT_LT(least, most / 2);
  for (int part = 0; part <= 10; ++part) {
    const int64_t budget = least + (most - least) * part / 10;
    const auto scopes = measured.chosen(budget);
    EXPECT_LE(measured.bytes(scopes), budget);
    EXPECT_LE(measured.weight(scopes), cheapest_of(points, budget) * (1 + 1e-12))
        << "budget " << budget << " of " << least << " to " << most;
  }
}

TEST(RecomputeChoice, WhatCannotBeReachedIsRefusedWithWhatCanBe) {
  for (const int64_t layers : {2, 8}) {
    const Program program = with_backward(bind(build_gpt({.layers = layers, .width = 24, .heads = 3, .context = 16, .vocabulary = 31}), 4));
    const Measured measured(program);
    const std::string message = refusal(Code::out_of_memory, [&] { measured.chosen(12345); });
    EXPECT_TRUE(says(message, {"12345 bytes", "GFLOP", "recompute_budget"}));
    const std::string before = "the smallest is ";
    const size_t open = message.find('(', message.find(before) + before.size());
    const int64_t least = whole_number(std::string_view(message).substr(open + 1), 0);
    EXPECT_GT(least, 12345);
    EXPECT_EQ(measured.bytes(measured.chosen(least)), least);
    EXPECT_THROW(measured.chosen(least - 1), Error);
  }
}

}  // namespace
}  // namespace st
