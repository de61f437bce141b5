#include "ir/build.h"

#include "ir/verify.h"
#include "refusal.h"

namespace st {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct Build : testing::Test {
  Program program;
  Builder b;
  Build() : b(program, 0) { program.sections.emplace_back(); }

  /// A gradient of 3 elements, factor, skip and rates.
  std::vector<Value> update_operands() {
    return {b.fill({3}, 0), b.fill({}, 1), b.fill({}, 0, DType::boolean), b.fill({2}, 1, DType::f64)};
  }
};

TEST_F(Build, InfersTypesAsNodesAreAppended) {
  const Value x = b.input("x", DType::f32, {kBatch, 3});
  const Value w = b.parameter("w", {3, 5}, {.kind = Init::normal, .scale = 0.02, .values = {}});
  const Value y = b.add(b.matmul(x, w), b.fill({}, 1));
  EXPECT_EQ(b.shape(y), Shape({kBatch, 5}));
  verify(program, "build");
}

TEST_F(Build, MistakesNameTheScopeTheOpAndTheTypes) {
  const Value x = b.input("x", DType::f32, {kBatch, 3});
  b.enter("block.3");
  b.enter("mlp");
  EXPECT_EQ(refusal([&] {
              b.matmul(x, b.fill({4, 5}, 0));
            }),
            "block.3.mlp: matmul: inner dimensions differ, a is f32[batch, 3], b is f32[4, 5]");
  EXPECT_THAT(refusal([&] {
                b(Op::gelu, {x}, {{"aproximate", "erf"}});
              }),
              StartsWith("block.3.mlp: gelu: attribute \"aproximate\" is unknown"));
  EXPECT_EQ(error_of([&] { b.matmul(x, x); }).place.op, "matmul");
}

TEST_F(Build, DropoutSitesAreNumberedInTheirOrderAndShareTheirCounters) {
  const Value x = b.input("x", DType::f32, {kBatch, 3});
  const Value last = b.dropout(b.dropout(b.dropout(x), 0.5));
  EXPECT_EQ(b.shape(last), Shape({kBatch, 3}));
  verify(program, "build");
  std::vector<int64_t> sites;
  std::vector<double> rates;
  for (const Node& node : b.graph().nodes) {
    if (node.op != Op::dropout) continue;
    sites.push_back(node.attrs.integer("site"));
    rates.push_back(node.attrs.real("rate"));
    EXPECT_THAT(b.graph()[node.in[1].node].reads, ElementsAre(program.slot_named("counters")));
  }
  EXPECT_THAT(sites, ElementsAre(0, 1, 2));
  EXPECT_THAT(rates, ElementsAre(0, 0.5, 0));
  ASSERT_EQ(program.slots.size(), 2U);
  EXPECT_EQ(program.slots[1].role, Role::control);
  EXPECT_THAT(refusal([&] { b.dropout(x, 1); }), HasSubstr("rate must be in [0, 1), got 1"));
}

TEST_F(Build, DropoutDoesNotTakeAHostsSlotForItsCounters) {
  const Value x = b.input("x", DType::f32, {kBatch, 3});
  b.input("counters", DType::i64, {2});
  EXPECT_THAT(refusal([&] { b.dropout(x); }), HasSubstr("the slot name \"counters\" is reserved for dropout but taken"));
}

TEST_F(Build, ARefusedNodeLeavesNothingBehind) {
  const Value x = b.input("x", DType::f32, {3});
  const SlotId slot = program.add_slot({.name = "s", .type = {DType::f32, {4}, {}}, .role = Role::report, .init = {}});
  const auto before = b.graph().size();
  refusal([&] { b.matmul(x, x); });
  refusal([&] { b.store(x, slot); });
  EXPECT_EQ(b.graph().size(), before);
}

TEST_F(Build, AValueMustBeOfThisSection) {
  EXPECT_THAT(refusal([&] { b.add({7, 0}, {7, 0}); }), HasSubstr("value %7.0 belongs to another section"));
  EXPECT_THAT(refusal([&] { b.add({}, {}); }), HasSubstr("belongs to another section"));
  const Value x = b.input("x", DType::f32, {3});
  EXPECT_THAT(refusal([&] { b.add({x.node, 1}, x); }), HasSubstr("belongs to another section"));
}

TEST_F(Build, ParametersAreNamedByScopeAndOnce) {
  b.enter("head");
  b.parameter("weight", {2}, {});
  EXPECT_EQ(program.slots[0].name, "head.weight");
  EXPECT_EQ(program.slot_named("head.weight"), 0);
  EXPECT_THAT(refusal([&] { b.parameter("weight", {2}, {}); }), HasSubstr("\"head.weight\" is taken"));
  b.leave();
  EXPECT_THAT(refusal([&] { b.parameter("p", {kBatch}, {}); }), HasSubstr("do not depend on the batch"));
  EXPECT_THAT(refusal([&] { b.parameter("p", {2}, {}, DType::i32); }), HasSubstr("must be floating, got i32"));
  EXPECT_THAT(refusal([&] { b.parameter("p", {2}, {.kind = Init::values, .values = {1, 2, 3}}); }), HasSubstr("but 3 values"));
  EXPECT_THAT(refusal([&] { b.input("x", DType::f32, {3, kBatch}); }), HasSubstr("only the first dimension may depend on the batch"));
}

TEST_F(Build, EachLoadOfATiedWeightIsANodeOfItsOwn) {
  const Value first = b.parameter("w", {2}, {});
  b.enter("head");
  const Value second = b.load(program.slot_named("w"));
  EXPECT_NE(first, second);
  EXPECT_NE(b.graph()[first.node].region, b.graph()[second.node].region);
  EXPECT_THAT(refusal([&] { b.load(9); }), HasSubstr("slot 9 does not exist; the program has 1"));
}

TEST_F(Build, ScopesNestAndKnowTheirBoundary) {
  b.enter("block.0");
  const RegionId block = b.region();
  b.enter("attention");
  b.enter("query", false);
  EXPECT_EQ(b.scoped("weight"), "block.0.attention.query.weight");
  EXPECT_EQ(program.regions[static_cast<size_t>(program.boundary_of(b.region()))].name, "block.0.attention");
  b.leave();
  b.leave();
  EXPECT_EQ(b.region(), block);
  EXPECT_EQ(program.boundary_of(block), block);
  b.leave();
  EXPECT_THAT(refusal(Code::wrong_state, [&] { b.leave(); }), HasSubstr("leave without a matching enter"));
}

TEST_F(Build, AScopeEnteredAgainIsTheSameRegion) {
  b.enter("cell");
  const RegionId cell = b.region();
  b.leave();
  b.enter("cell");
  EXPECT_EQ(b.region(), cell);
  b.leave();
  EXPECT_THAT(refusal([&] { b.enter("cell", false); }), HasSubstr("another parent or boundary flag"));
  EXPECT_EQ(b.region(), 0);
}

TEST_F(Build, SlotsAreWrittenThroughTheirOwnCallsAndWithTheirOwnType) {
  const Value x = b.input("x", DType::f32, {3});
  const SlotId slot = program.add_slot({.name = "s", .type = {DType::f64, {3}, {}}, .role = Role::report, .init = {}});
  EXPECT_EQ(refusal([&] { b.store(x, slot); }),
            "store: the value is f32[3], slot \"s\" is f64[3]; both must have one dtype, shape and layout");
  EXPECT_THAT(refusal([&] { b.accumulate(x, slot); }), StartsWith("accumulate: the value is f32[3]"));
  EXPECT_THAT(refusal([&] { b.append(Op::store, {x}); }), HasSubstr("use Builder::store"));
  EXPECT_THAT(refusal([&] { b.append(Op::average, {x, x, x}); }), HasSubstr("use Builder::average"));
  const Value skip = b.fill({}, 0, DType::boolean), rates = b.fill({2}, 1, DType::f64);
  EXPECT_THAT(refusal([&] { b.average(x, skip, rates, slot, 0.5); }), StartsWith("average: the value is f32[3]"));
  EXPECT_THAT(refusal([&] { b.append(Op::adamw, {x, x, x, x}); }), HasSubstr("use Builder::update"));
  b.store(b(Op::cast, {x}, {{"dtype", "f64"}}), slot, When::first);
  const Node& node = b.graph().nodes.back();
  EXPECT_EQ(node.when, When::first);
  EXPECT_THAT(node.writes, ElementsAre(slot));
  EXPECT_THAT(node.reads, ElementsAre());
}

TEST_F(Build, AnOptimizerReadsAndWritesItsParameterAndItsState) {
  const auto slot = [&](const char* name, const Shape& shape) {
    return program.add_slot({.name = name, .type = {DType::f32, shape, {}}, .role = Role::parameter, .init = {}});
  };
  const SlotId w = slot("w", {3}), m = slot("m", {3}), v = slot("v", {4});
  const std::vector<Value> operands = update_operands();
  EXPECT_THAT(refusal([&] {
                b.update(Op::adamw, operands, {w, m, v}, {});
              }),
              HasSubstr("adamw: its moment2 of f32[3] is f32[3], slot \"v\" is f32[4]"));
  EXPECT_THAT(refusal([&] { b.update(Op::add, {operands[0], operands[0]}, {w}, {}); }), HasSubstr("not an optimizer"));
  EXPECT_THAT(refusal([&] {
                b.update(Op::adamw, operands, {w, m}, {});
              }),
              HasSubstr("needs 2 state slots for a parameter f32[3], optionally followed by one working copy, got 1"));
  EXPECT_THAT(refusal([&] { b.update(Op::sgd, operands, {v}, {}); }), HasSubstr("the gradient is f32[3], slot \"v\" is f32[4]"));
  b.update(Op::sgd, operands, {w, m}, {{"momentum", 0.5}});
  EXPECT_EQ(b.graph().nodes.back().reads, b.graph().nodes.back().writes);
}

TEST_F(Build, AnOptimizerMayLeaveAWorkingCopyOfItsParameter) {
  const auto slot = [&](const char* name, Role role, DType dtype, const Shape& shape, SlotId of) {
    return program.add_slot({.name = name, .type = {dtype, shape, {}}, .role = role, .init = {}, .of = of});
  };
  const SlotId w = slot("w", Role::parameter, DType::f32, {3}, -1), m = slot("m", Role::optimizer, DType::f32, {3}, w);
  const SlotId v = slot("v", Role::parameter, DType::f32, {3}, -1);
  const std::vector<Value> operands = update_operands();
  const auto update = [&](SlotId copy) { b.update(Op::sgd, operands, {w, m, copy}, {{"momentum", 0.5}}); };
  for (const SlotId wrong : {m, slot("of v", Role::working, DType::bf16, {3}, v), slot("short", Role::working, DType::bf16, {2}, w)})
    EXPECT_THAT(refusal([&] { update(wrong); }), HasSubstr("is not a working copy of \"w\""));
  update(slot("right", Role::working, DType::bf16, {3}, w));
}

TEST_F(Build, ComparesAnI32WithAnI64ByWideningIt) {
  const Value few = b.input("few", DType::i32, {kBatch}), many = b.input("many", DType::i64, {kBatch}),
              real = b.input("real", DType::f32, {kBatch});
  for (const auto& [x, y] : {std::pair(few, many), std::pair(many, few)}) {
    const Value same = b(Op::compare, {x, y}, {{"test", "equal"}});
    EXPECT_EQ(b.type(same).dtype, DType::boolean);
    for (const Value& operand : b.graph()[same.node].in) EXPECT_EQ(b.type(operand).dtype, DType::i64);
  }
  EXPECT_THAT(refusal([&] { b(Op::compare, {few, real}, {{"test", "equal"}}); }), HasSubstr("i32"));
  verify(program, "build");
}

TEST_F(Build, SumToUndoesABroadcast) {
  const Value x = b.input("x", DType::f32, {kBatch, 3, 4});
  EXPECT_EQ(b.sum_to(x, {kBatch, 3, 4}), x);
  for (const Shape& shape : {Shape{4}, Shape{}, Shape{3, 1}, Shape{1, 1, 4}, Shape{kBatch, 1, 1}, Shape{1, 3, 4}, Shape{1}})
    EXPECT_EQ(b.shape(b.sum_to(x, shape)), shape) << text(shape);
  EXPECT_THAT(refusal([&] { b.sum_to(x, {3}); }), HasSubstr("was not broadcast from shape [3]"));
  EXPECT_THAT(refusal([&] { b.sum_to(x, {2, kBatch, 3, 4}); }), HasSubstr("was not broadcast"));
}

}  // namespace
}  // namespace st
