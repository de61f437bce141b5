// ZeRO-3's units: what is gathered, where, for how long, and its memory.

#include <map>
#include <set>

#include "ir/cuts.h"
#include "passes/accumulate.h"
#include "passes/autocast.h"
#include "passes/freeze.h"
#include "passes/fuse.h"
#include "passes/pack_weights.h"
#include "passes/recompute.h"
#include "passes/recompute_scopes.h"
#include "passes/zero_shard.h"
#include "small_program.h"

namespace st {
namespace {

struct UnitsOf {
  int32_t ranks = 3, rank = 1;
  int64_t layers = 2;
  DType low = DType::f32;
  bool recomputes = false, freezes = false;

  Program program() const {
    Program p = gpt_of_rank(ranks, rank, layers);
    if (freezes) freeze(p, [](const Slot& parameter) { return parameter.name.starts_with("block.0."); });
    autocast(p, low, When::first);
    p = with_backward(std::move(p), ranks);
    if (recomputes) recompute(p, scopes_to_recompute(p, "blocks"));
    accumulate(p, 2);
    zero_shard(p, 3, Reduce::micro, 40000,
               [](const Slot&, bool) { return OptimizerChoice{.op = Op::adamw, .attrs = make_attrs(Op::adamw, {})}; });
    verify(p, "zero_shard");
    return p;
  }
};

std::vector<std::string> gathered_scopes(const Program& program, Phase phase) {
  std::vector<std::string> scopes;
  for (const Node* node : nodes_of(program, phase, Op::all_gather))
    scopes.push_back(program.regions[static_cast<size_t>(node->region)].name);
  return scopes;
}

TEST(GatherUnits, AreTheBoundaryScopesInTheOrderOfTheirFirstUses) {
  using Names = std::vector<std::string>;
  const Program program = UnitsOf{}.program();
  EXPECT_EQ(gathered_scopes(program, Phase::forward),
            (Names{"embedding", "block.0", "block.0.attention", "block.0.mlp", "block.1", "block.1.attention", "block.1.mlp", "head"}));
  EXPECT_EQ(gathered_scopes(program, Phase::backward),
            (Names{"head", "block.1.mlp", "block.1", "block.1.attention", "block.0.mlp", "block.0", "block.0.attention"}));
}

TEST(GatherUnits, LeaveNothingWholeThatLasts) {
  for (const DType low : {DType::f32, DType::bf16})
    for (const bool recomputes : {false, true}) {
      const Program program = UnitsOf{.low = low, .recomputes = recomputes, .freezes = true}.program();
      for (const Slot& slot : program.slots) {
        if (slot.role != Role::parameter && slot.role != Role::working && slot.role != Role::gradient) continue;
        ASSERT_TRUE(slot.type.layout.is_flat()) << slot.name;
        EXPECT_LT(own_type(program, slot).shape.elements(), slot.type.shape.elements() / 3 + 1025) << slot.name;
      }
      for (const Section& section : program.sections)
        for (const Node& node : section.graph.nodes)
          for (const Value v : node.in) {
            const Node& load = section.graph[v.node];
            if (section.phase == Phase::update || load.op != Op::load || program.parameter_of(load) < 0) continue;
            const bool makes_copy = node.op == Op::cast && node.when == When::first;
            EXPECT_EQ(slot_of(program, load.reads[0]).role, makes_copy ? Role::parameter : Role::gathered);
          }
    }
}

TEST(GatherUnits, ComeBeforeTheUnitInFrontOfThemComputes) {
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    const Program program = UnitsOf{.low = DType::bf16}.program();
    const Graph& graph = program.find(phase)->graph;
    std::vector<int32_t> gathers, first_loads;  // by unit
    std::map<SlotId, size_t> unit_of;
    for (int32_t n = 0; n < graph.size(); ++n) {
      const Node& node = graph[n];
      for (const SlotId slot : node.writes)
        if (node.op == Op::all_gather) unit_of[slot] = gathers.size();
      if (node.op == Op::all_gather) gathers.push_back(n);
      if (node.op != Op::load || !unit_of.contains(node.reads[0])) continue;
      const size_t unit = unit_of.at(node.reads[0]);
      first_loads.resize(std::max(first_loads.size(), unit + 1), -1);
      if (first_loads[unit] < 0) first_loads[unit] = n;
    }
    ASSERT_EQ(first_loads.size(), gathers.size());
    for (size_t unit = 0; unit < gathers.size(); ++unit) {
      EXPECT_LT(gathers[unit], first_loads[unit]);
      if (unit > 0) {
        EXPECT_LT(gathers[unit], first_loads[unit - 1]);
      }
      if (unit > 1) {
        EXPECT_GT(gathers[unit], first_loads[unit - 2]);
      }
    }
  }
}

// The tied weight is used in two scopes; a scope that is recomputed in backward gathers its unit once there.
TEST(GatherUnits, GatherWhatTwoScopesUseInEachAndWhatRunsAgainOnce) {
  for (const bool recomputes : {false, true}) {
    const Program program = UnitsOf{.recomputes = recomputes}.program();
    std::map<std::string, int> times;
    for (const Phase phase : {Phase::forward, Phase::backward})
      for (const Node* node : nodes_of(program, phase, Op::all_gather))
        for (const SlotId slot : node->writes) ++times[slot_of(program, slot_of(program, slot).of).name];
    EXPECT_EQ(times["token_embedding.weight"], 3);  // embedding, head, and head in backward
    EXPECT_EQ(times["position_embedding.weight"], 1);
    EXPECT_EQ(times["block.0.mlp.expand.weight"], 2);
    EXPECT_EQ(times["block.0.mlp.expand.bias"], recomputes ? 2 : 1);
  }
}

TEST(GatherUnits, AreSentInSixteenBitsWhereProductsTakeThem) {
  const Program program = UnitsOf{.low = DType::bf16}.program();
  std::set<SlotId> made;
  for (const Node& node : program.find(Phase::forward)->graph.nodes) {
    if (node.op == Op::store) made.insert(node.writes[0]);
    if (node.op != Op::all_gather) continue;
    for (const SlotId piece : node.reads)
      EXPECT_TRUE(slot_of(program, piece).role == Role::parameter || made.contains(piece)) << slot_of(program, piece).name;
    for (const SlotId slot : node.writes) {
      const bool is_weight = slot_of(program, slot).name.find(".weight") != std::string::npos;
      if (is_weight && slot_of(program, slot).name.find("embedding.weight") == std::string::npos) {
        EXPECT_EQ(slot_of(program, slot).type.dtype, DType::bf16) << slot_of(program, slot).name;
      }
    }
  }
}

TEST(GatherUnits, TakeNoMemoryButThatOfTheLiveOnes) {
  for (const int64_t layers : {2, 12}) {
    Program program = UnitsOf{.layers = layers}.program();
    fuse(program);
    pack_weights(program, 2, [](const Program&, const Section&, const Node&) { return int64_t{64}; });
    verify(program, "pack_weights");
    EXPECT_EQ(std::ranges::count(program.slots, Role::packed, &Slot::role), 0);
    const MemoryLayout layout = memory_without_workspace(program);
    std::map<SlotId, std::pair<int32_t, int32_t>> lives;
    int64_t most = 0;
    for (const Section& section : program.sections) {
      std::map<SlotId, int32_t> from, to;
      std::vector<int64_t> live(section.graph.nodes.size());
      for (int32_t n = 0; n < section.graph.size(); ++n) {
        const Node& node = section.graph[n];
        if (node.op == Op::all_gather)
          for (const SlotId slot : node.writes) from[slot] = n;
        for (const Value v : node.in)
          if (const Node& load = section.graph[v.node]; load.op == Op::load && from.contains(load.reads[0])) to[load.reads[0]] = n;
      }
      for (const auto& [slot, begin] : from)
        for (int32_t n = begin; n <= to.at(slot); ++n) live[static_cast<size_t>(n)] += align_up(slot_of(program, slot).type.bytes());
      if (!live.empty()) most = std::max(most, *std::ranges::max_element(live));
    }
    EXPECT_GE(layout.of(Arena::buckets), most) << layers << " layers";
    EXPECT_LT(layout.of(Arena::buckets), most + most / 100) << layers << " layers";  // gaps of a vector between matrices
    const int64_t width = 66, scope = 4 * (12 * width * width + 13 * width + 2 * width), vocabulary = 4 * 70 * width;
    EXPECT_LT(most, scope + vocabulary + 64 * 20) << layers;  // a block's, or the last one's mlp and the head
  }
}

}  // namespace
}  // namespace st
