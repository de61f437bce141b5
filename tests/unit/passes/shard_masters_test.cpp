// Which masters shard_masters() leaves in shards, on every rank of every stage, and how a stage makes its working copies.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/cuts.h"
#include "ir/verify.h"
#include "passes/accumulate.h"
#include "passes/autocast.h"
#include "passes/freeze.h"
#include "passes/pipeline_cut.h"
#include "passes/split_backward.h"
#include "passes/tensor_parallel.h"
#include "passes/zero_shard.h"
#include "small_program.h"

namespace st {
namespace {

OptimizerChoice adamw_for_all(const Slot&, bool) { return {.op = Op::adamw, .attrs = make_attrs(Op::adamw, {})}; }

struct RankOf {
  Mesh mesh;
  std::vector<int32_t> stage_of = {};  // by part; empty: one stage
  bool splits = false;                 // backward into halves
  bool freezes = false;                // block.0
  bool is_short = false;               // borrows the copies

  Program program(int32_t rank) const {
    const MeshPosition at = position_of(mesh, rank);
    Program p = bind(build_gpt({.layers = 3, .width = 64, .heads = 4, .context = 8, .vocabulary = 70}), 2);
    p.mesh = mesh;
    p.rank = at.data;
    p.tensor_rank = at.tensor;
    p.stage = at.stage;
    if (freezes) freeze(p, [](const Slot& parameter) { return parameter.name.starts_with("block.0."); });
    const When copies = is_short ? When::every : When::first;
    autocast(p, DType::bf16, copies);
    scale_loss(p, 4);
    if (mesh.tensor > 1) tensor_parallel(p);
    autodiff(p);
    if (mesh.tensor > 1) end_tensor_parallel(p);
    if (!stage_of.empty()) pipeline_cut(p, {.stage_of = stage_of, .copies = copies});
    if (splits) split_backward(p);
    accumulate(p, 2);
    zero_shard(p, 1, Reduce::micro, 40000, adamw_for_all);
    shard_masters(p, is_short);
    verify(p, "shard_masters");
    return p;
  }
};

const std::vector<RankOf> kRanksOf = {
    {.mesh = {.data = 3}},
    {.mesh = {.data = 2, .tensor = 2}},
    {.mesh = {.data = 2, .stage = 2}, .stage_of = {0, 1}},
    {.mesh = {.data = 3, .stage = 2}, .stage_of = {0, 1, 1, 0}, .splits = true},  // zb-v
    {.mesh = {.data = 2, .tensor = 2, .stage = 2}, .stage_of = {0, 1, 0, 1}},
    {.mesh = {.data = 2, .stage = 3}, .stage_of = {0, 1, 2}, .freezes = true},
};

std::vector<const Slot*> parameters_of(const Program& program) {
  std::vector<const Slot*> all;
  for (const Slot& slot : program.slots)
    if (slot.role == Role::parameter) all.push_back(&slot);
  return all;
}

/// Saves and gathers over all ranks need this: each rank computes from its own program what the others hold.
TEST(ShardMasters, AreKnownAlikeOnAllRanksOfAllStages) {
  for (const RankOf& of : kRanksOf) {
    const Program first = of.program(0);
    const std::vector<const Slot*> slots = parameters_of(first);
    std::map<std::string, int64_t> held;
    for (int32_t rank = 0; rank < of.mesh.ranks(); ++rank) {
      const Program program = of.program(rank);
      const std::vector<const Slot*> own = parameters_of(program);
      ASSERT_EQ(own.size(), slots.size());
      for (size_t i = 0; i < slots.size(); ++i) {
        EXPECT_EQ(own[i]->type, slots[i]->type) << slots[i]->name << ", rank " << rank;
        const PieceRange range = held_by(first, *slots[i], rank);
        EXPECT_EQ(range, held_by(program, *own[i], rank)) << slots[i]->name << ", rank " << rank;
        held[slots[i]->name] += range.elements;
        // A rank that answers for a shard has it.
        if (slots[i]->type.layout.is_flat() && range.elements > 0) {
          EXPECT_EQ(own_type(program, *own[i]).shape.elements(), range.elements);
        }
      }
    }
    for (const Slot* slot : slots)
      EXPECT_EQ(held[slot->name], slot->piece.is_cut() ? slot->piece.whole.elements() : slot->type.shape.elements()) << slot->name;
  }
}

/// Weights that only products read; not the tied embedding, which is looked up too, nor frozen ones, vectors of norms and biases of fp32.
TEST(ShardMasters, AreThoseThatOnlyProductsRead) {
  for (const RankOf& of : kRanksOf) {
    const Program program = of.program(0);
    for (const Slot* slot : parameters_of(program)) {
      const bool is_of_block = slot->name.starts_with("block."), is_matrix = slot->type.shape.rank() == 2;
      const bool is_frozen = of.freezes && slot->name.starts_with("block.0.");
      if (is_matrix) {
        EXPECT_EQ(slot->type.layout.is_flat(), is_of_block && !is_frozen) << slot->name;
      }
      if (slot->name.ends_with("gamma")) {
        EXPECT_FALSE(slot->type.layout.is_flat()) << slot->name;
      }
    }
  }
}

/// A rank makes its shards of its stage's copies, gathers them in one place, and reads a master for nothing else.
TEST(ShardMasters, AreReadOnlyForTheCopiesThatTheFirstSectionGathers) {
  for (const RankOf& of : kRanksOf)
    for (int32_t rank = 0; rank < of.mesh.ranks(); ++rank) {
      const Program program = of.program(rank);
      std::set<SlotId> own, gathered, cast;
      for (SlotId s = 0; s < std::ssize(program.slots); ++s)
        if (const Slot& slot = program.slot(s); slot.role == Role::parameter && slot.type.layout.is_flat() && is_here(program, slot))
          own.insert(s);
      int gathers = 0;
      for (const Section& section : program.sections)
        for (int32_t n = 0; n < section.graph.size() && section.phase != Phase::update; ++n) {
          const Node& node = section.graph[n];
          if (gathers_copies(program, node)) {
            EXPECT_EQ(&section, program.sections.data());
            ++gathers;
            for (const SlotId copy : node.writes) gathered.insert(program.slot(copy).of);
          }
          if (node.op == Op::load && program.slot(node.reads[0]).type.layout.is_flat() &&
              program.slot(node.reads[0]).role == Role::parameter) {
            EXPECT_EQ(&section, program.sections.data());
            EXPECT_TRUE(has_shard(program, node.reads[0]));
            EXPECT_TRUE(cast.insert(node.reads[0]).second) << "once";
          }
        }
      EXPECT_EQ(gathers, own.empty() ? 0 : 1);
      EXPECT_EQ(gathered, own);
      for (const SlotId master : own) EXPECT_EQ(cast.contains(master), has_shard(program, master));
    }
}

TEST(ShardMasters, OfAShortMicroBatchAreNotReadAtAll) {
  for (RankOf of : kRanksOf) {
    const Program full = of.program(static_cast<int32_t>(of.mesh.ranks() - 1));
    of.is_short = true;
    const Program rest = of.program(static_cast<int32_t>(of.mesh.ranks() - 1));
    for (const Section& section : rest.sections)
      for (const Node& node : section.graph.nodes) {
        if (section.phase == Phase::update) continue;
        EXPECT_FALSE(node.op == Op::all_gather && rest.slot(node.writes[0]).role == Role::working);
        for (const SlotId read : node.reads)
          EXPECT_FALSE(rest.slot(read).role == Role::parameter && rest.slot(read).type.layout.is_flat()) << rest.slot(read).name;
      }
    for (const Slot& slot : rest.slots) {
      if (slot.role == Role::parameter) {
        EXPECT_EQ(slot.type, full.slot(full.slot_named(slot.name)).type) << slot.name;
      }
      if (slot.role == Role::working) {
        const Slot& parameter = rest.slot(slot.of);
        EXPECT_EQ(slot.borrowed, parameter.type.layout.is_flat() && is_here(rest, parameter)) << slot.name;
      }
    }
  }
}

}  // namespace
}  // namespace st
