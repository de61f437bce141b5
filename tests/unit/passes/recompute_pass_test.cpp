#include "passes/recompute.h"

#include <functional>
#include <set>

#include "ir/host_op.h"
#include "ir/memory.h"
#include "ir/print.h"
#include "passes/dropout.h"
#include "passes/fuse.h"
#include "passes/recompute_scopes.h"
#include "program_run.h"
#include "refusal.h"
#include "sanitized.h"
#include "scoped_program.h"
#include "small_program.h"
#include "small_stack.h"

namespace st {
namespace {

Program differentiated_with(const Program& model, int64_t batch, double dropout = 0) {
  Program program = bind(model, batch);
  set_dropout(program, dropout, 1);
  return with_backward(std::move(program));
}

struct Recomputed {
  Program program;
  RecomputeRecord record;
};

Recomputed recomputed(const Program& differentiated_with, std::string_view policy) {
  Recomputed made{differentiated_with, {}};
  made.record = recompute(made.program, scopes_to_recompute(made.program, policy));
  verify(made.program, "recompute");
  return made;
}

constexpr int64_t kLayers = 3, kWidth = 12, kHeads = 3, kContext = 5, kVocabulary = 17, kRows = 4, kTokens = kRows * kContext;

Program three_blocks(double dropout = 0) {
  return differentiated_with(
      build_gpt({.layers = kLayers, .width = kWidth, .heads = kHeads, .context = kContext, .vocabulary = kVocabulary}), kRows, dropout);
}

/// Bytes of a stash with values of these many fp32 numbers per token.
int64_t bytes_of(std::initializer_list<int64_t> numbers_a_token) {
  int64_t sum = 0;
  for (const int64_t numbers : numbers_a_token) sum += align_up(kTokens * numbers * 4);
  return sum;
}

// Kept: the stream before each block; in the head the norm's operand, mean, deviation and result, the logits and their log-sum-exp.
TEST(Recompute, BlocksKeepTheirInputsAndNothingElse) {
  const Recomputed blocks = recomputed(three_blocks(), "blocks");
  const int64_t head = bytes_of({kWidth, 1, 1, kWidth, kVocabulary, 1});
  EXPECT_EQ(blocks.record.stash_after, kLayers * bytes_of({kWidth}) + head);
  EXPECT_EQ(memory_without_workspace(blocks.program).of(Arena::stash), blocks.record.stash_after);
}

// A block without recompute keeps operand, mean, deviation and result of two norms, q, k, v, o, the log-sum-exp of each head, and the
// gelu's operand and result.
TEST(Recompute, SavesWhatABlockKeepsElse) {
  const int64_t attention = bytes_of({kWidth, kWidth, kWidth, kWidth, kHeads}), mlp = bytes_of({4 * kWidth, 4 * kWidth});
  const int64_t block = attention + mlp + bytes_of({1, 1, kWidth, kWidth, 1, 1, kWidth});
  const auto expect = [&](std::string_view policy, int64_t saved) {
    const Recomputed made = recomputed(three_blocks(), policy);
    ASSERT_EQ(made.record.scopes.size(), static_cast<size_t>(kLayers)) << policy;
    for (const RecomputedScope& scope : made.record.scopes) EXPECT_EQ(scope.stash_bytes, saved) << scope.name;
    EXPECT_EQ(made.record.stash_before - made.record.stash_after, kLayers * saved) << policy;
    EXPECT_EQ(memory_without_workspace(three_blocks()).of(Arena::stash) - memory_without_workspace(made.program).of(Arena::stash),
              kLayers * saved)
        << policy;
  };
  expect("blocks", block);
  expect("attention", attention);
  expect("block.*.attention", attention);
  expect("block.?.mlp", mlp);
}

TEST(Recompute, SaysWhatRunsAgain) {
  const RecomputeRecord blocks = recomputed(three_blocks(), "blocks").record;
  // Both products of attention and the mlp's first one; the last one's result leaves the block. A query sees (context + 1) / 2 keys.
  const double products = 2.0 * kTokens * (3 + 1 + 4) * kWidth * kWidth, attention = 4.0 * kTokens * kWidth * (kContext + 1) / 2;
  for (const RecomputedScope& scope : blocks.scopes) {
    EXPECT_EQ(scope.cost.flops, products + attention) << scope.name;
    EXPECT_GT(scope.cost.bytes, 0);
    EXPECT_EQ(scope.nodes,
              2 /* norms */ + 3 /* products */ + 3 /* biases */ + 1 /* split */ + 1 /* attention */ + 1 /* sum */ + 1 /* gelu */);
  }
  EXPECT_EQ(blocks.cost().flops, kLayers * (products + attention));
}

TEST(Recompute, NoneLeavesTheProgramAsItIs) {
  const Program before = three_blocks();
  const Recomputed none = recomputed(before, "none");
  EXPECT_EQ(print(none.program), print(before));
  EXPECT_TRUE(none.record.scopes.empty());
  EXPECT_EQ(none.record.stash_after, none.record.stash_before);
}

// A block's nodes are repeated after the backward of the next block, so that both can use the same memory.
TEST(Recompute, RepeatsABlockWhenItsBackwardBegins) {
  const Recomputed blocks = recomputed(three_blocks(0.1), "blocks");
  const auto& nodes = blocks.program.find(Phase::backward)->graph.nodes;
  const auto is_in = [&](const Node& node, int64_t block) {
    return node.op != Op::load && blocks.program.regions[static_cast<size_t>(node.region)].name.starts_with(text("block.", block));
  };
  for (int64_t i = 0; i + 1 < kLayers; ++i) {
    const auto first = std::ranges::find_if(nodes, [&](const Node& node) { return is_in(node, i); });
    const auto last = std::ranges::find_if(nodes.rbegin(), nodes.rend(), [&](const Node& node) { return is_in(node, i + 1); });
    EXPECT_LT(last.base() - nodes.begin(), first - nodes.begin() + 1) << "block " << i;
  }
  // So the largest block's temporaries count once for any number of blocks.
  const auto activations = [](int64_t layers) {
    const Program gpt = build_gpt({.layers = layers, .width = kWidth, .heads = kHeads, .context = kContext, .vocabulary = kVocabulary});
    return memory_without_workspace(recomputed(differentiated_with(gpt, kRows), "blocks").program).of(Arena::activations);
  };
  EXPECT_EQ(activations(2), activations(9));
}

TEST(Recompute, DropoutReadsTheSameCountersAndSite) {
  const Recomputed blocks = recomputed(three_blocks(0.1), "blocks");
  std::multiset<int64_t> forward, backward;
  for (const Section& section : blocks.program.sections)
    for (const Node* node : nodes_of(section.graph, Op::dropout)) {
      (section.phase == Phase::forward ? forward : backward).insert(node->attrs.integer("site"));
      EXPECT_EQ(slot_of(blocks.program, section.graph[node->in[1].node].reads[0]).name, "counters");
    }
  // Each once for its gradient; the first of a block's two again for the sum that the mlp's norm reads.
  for (const int64_t site : forward) EXPECT_EQ(backward.count(site), site % 2 == 1 && site < 2 * kLayers ? 2U : 1U) << site;
}

// --- which scopes

std::vector<std::string> names(const Program& program, std::string_view policy) {
  std::vector<std::string> found;
  for (const RegionId scope : scopes_to_recompute(program, policy)) found.push_back(program.regions[static_cast<size_t>(scope)].name);
  return found;
}

using Names = std::vector<std::string>;

TEST(RecomputeScopes, PoliciesFindTheirScopes) {
  const Program gpt = small_gpt();
  EXPECT_EQ(names(gpt, "none"), Names());
  EXPECT_EQ(names(gpt, "blocks"), (Names{"embedding", "block.0", "block.1"}));
  EXPECT_EQ(names(gpt, "full"), (Names{"embedding", "block.0", "block.1", "head"}));
  EXPECT_EQ(names(gpt, "attention"), (Names{"block.0.attention", "block.1.attention"}));
}

TEST(RecomputeScopes, PatternsMatchWholeNames) {
  const Program gpt = build_gpt({.layers = 11, .width = 12, .heads = 3, .context = 5, .vocabulary = 17});
  EXPECT_EQ(names(gpt, "block.10.mlp"), (Names{"block.10.mlp"}));
  EXPECT_EQ(names(gpt, "block.1?"), (Names{"block.10"}));
  EXPECT_EQ(names(gpt, "head,block.?.mlp").size(), 11U);
  EXPECT_EQ(names(gpt, "*.mlp").size(), 11U);
  EXPECT_EQ(names(gpt, "*").size(), 2U + 3U * 11U);
  EXPECT_EQ(names(gpt, "*1*mlp*"), (Names{"block.1.mlp", "block.10.mlp"}));
  EXPECT_EQ(names(gpt, "*.mlp,block.3.mlp").size(), 11U) << "each once";
  EXPECT_EQ(names(gpt, " block.0.mlp ,  block.3.mlp"), names(gpt, "block.0.mlp,block.3.mlp"));
}

std::string refusal_of(const Program& program, std::string_view policy) {
  return refusal([&] { scopes_to_recompute(program, policy); });
}

TEST(RecomputeScopes, WhatMatchesNothingIsRefusedNamingWhatThereIs) {
  const Program gpt = small_gpt();
  EXPECT_TRUE(says(refusal_of(gpt, "block.*.mpl"), {"\"block.*.mpl\""}));
  for (const char* policy : {"block.*.mpl", "mlp", "block", "block.0.mlp,heat", "block.0,", ",block.0", "block.0, ,block.1", "", ".",
                             "block.0.mlp.expand", "Head"})
    EXPECT_TRUE(says(refusal_of(gpt, policy), {"embedding", "block.1.attention", "head", "none, blocks"})) << policy;
  EXPECT_TRUE(says(refusal_of(gpt, "block.0.mlp,heat"), {"did you mean \"head\"?"}));
  EXPECT_TRUE(says(refusal_of(build_gpt({.layers = 40, .width = 12, .heads = 3, .context = 5, .vocabulary = 17}), "x"), {"more"}));
}

TEST(RecomputeScopes, AGraphWithoutThemSaysHowToGetThem) {
  SmallProgram bare;
  bare.b.enter("layer", false);
  bare.b(Op::tanh, {bare.b.input("x", DType::f32, {2, 3})});
  bare.b.leave();
  for (const char* policy : {"blocks", "full", "attention", "layer", "*"})
    EXPECT_TRUE(says(refusal_of(bare.program, policy), {"st_graph_scope"})) << policy;
  bare.b.enter("block");
  bare.b(Op::tanh, {bare.b.input("y", DType::f32, {2, 3})});
  bare.b.leave();
  EXPECT_TRUE(says(refusal_of(bare.program, "attention"), {"block"}));
  EXPECT_EQ(names(bare.program, "blocks"), Names{"block"});
}

// --- what is kept anyway

/// loss = sum(f(x) * w) with f in a scope "block"; x [2, 3] is a product.
Program around(const std::function<Value(Builder&, Value x)>& f) {
  SmallProgram s(1);
  Builder& b = s.b;
  const auto parameter = [&](const char* name, const Shape& shape) {
    return b.parameter(name, shape, {.kind = Init::uniform, .values = {}});
  };
  const Value x = b.matmul(b.input("x", DType::f32, {2, 3}), parameter("w", {3, 3}));
  b.enter("block");
  const Value y = f(b, x);
  b.leave();
  s.program.loss_sum = b.sum(b.mul(y, parameter("v", {2, 3})), {});
  autodiff(s.program);
  return s.program;
}

int64_t repeated(const Program& program, Op op) { return std::ssize(nodes_of(program, Phase::backward, op)); }

TEST(Recompute, AHostsForwardIsCalledOnce) {
  HostOps ops;
  ops.add({.name = "cube",
           .outputs = 1,
           .shape =
               [](auto in, auto out) {
                 out[0] = in[0];
                 return 0;
               },
           .forward = [](auto, auto) { return 0; },
           .backward = [](auto, auto, auto, auto) { return 0; }});
  const Attrs attrs = *ops.attrs_of("cube");
  const Recomputed made =
      recomputed(around([&](Builder& b, Value x) { return b(Op::tanh, {b(Op::host, {b(Op::tanh, {x})}, attrs)}); }), "block");
  EXPECT_EQ(repeated(made.program, Op::host), 0);
  EXPECT_EQ(repeated(made.program, Op::host_backward), 1);
  EXPECT_EQ(repeated(made.program, Op::tanh), 1) << "its operand is made again; the other's result leaves the scope";
}

// In 16 bits fuse rounds a product and its bias once if nothing else reads the product, so a repeated product must have as many readers.
TEST(Recompute, KeepsAProductThatFuseWouldMakeOtherwise) {
  const auto count = [](bool twice) {
    const Recomputed made = recomputed(around([&](Builder& b, Value x) {
                                         const Value product = b.matmul(x, b.parameter("p", {3, 3}, {.kind = Init::uniform, .values = {}}));
                                         const Value sum = b.add(product, b.parameter("q", {3}, {}));
                                         const Value y = b(Op::tanh, {b(Op::gelu, {sum})});
                                         return twice ? b.add(y, product) : y;
                                       }),
                                       "block");
    return repeated(made.program, Op::matmul);
  };
  EXPECT_EQ(count(false), count(true) + 1);
}

TEST(Recompute, AScopeOfManyOpsInARowIsRepeatedWithoutDeepRecursion) {
  on_a_small_stack([] {
    const Recomputed made = recomputed(around([](Builder& b, Value x) {
                                         for (int i = 0; i < 6000; ++i) x = b(Op::tanh, {x});
                                         return x;
                                       }),
                                       "block");
    EXPECT_EQ(repeated(made.program, Op::tanh), 5999);
  });
}

TEST(Recompute, RefusesALayersOwnScope) {
  Program program = around([](Builder& b, Value x) {
    b.enter("layer", false);
    const Value y = b(Op::tanh, {x});
    b.leave();
    return y;
  });
  const std::vector<RegionId> scopes = {static_cast<RegionId>(program.regions.size()) - 1};
  EXPECT_THROW(recompute(program, scopes), Error);
}

// --- any graph

/// Gradients and loss of one micro-batch with dropout, on the reference backend.
std::vector<float> results_of(Program program) {
  fuse(program);
  verify(program, "fuse");
  ProgramRun run(std::move(program));
  const auto x = some_floats(5 * 6, 1), y = some_floats(5 * 6, 2);
  run.bind("x", x.data());
  run.bind("y", y.data());
  if (run.program().slot_named("counters") >= 0) run.data<int64_t>("counters")[0] = 3;
  run.run();
  std::vector<float> all = {static_cast<float>(*run.data<double>("loss_sum"))};
  for (const Slot& slot : run.program().slots) {
    if (slot.role != Role::gradient) continue;
    const auto values = run.floats(slot.name);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(Recompute, LeavesEveryBitOfRandomGraphsWhateverScopesAreChosen) {
  int saving = 0;
  constexpr uint64_t kSeeds = kSanitized ? 30 : 150;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Program program = differentiated_with(scoped_program(seed, 4), 5, 0.25);
    const auto wanted = results_of(program);
    for (const char* policy : {"blocks", "*.inner.0", "block.1,block.3.*", "block.0"}) {
      Recomputed made;
      try {
        made = recomputed(program, policy);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Code::invalid_argument) << "no block of this graph has an inner scope";
        continue;
      }
      saving += made.record.stash_after < made.record.stash_before ? 1 : 0;
      EXPECT_EQ(memory_without_workspace(made.program).of(Arena::stash), made.record.stash_after) << "seed " << seed << " " << policy;
      EXPECT_EQ(results_of(made.program), wanted) << "seed " << seed << " " << policy;
    }
  }
  EXPECT_GT(saving, kSanitized ? 20 : 150);
}

}  // namespace
}  // namespace st
