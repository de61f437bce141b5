#include "ir/build.h"
#include "ir/verify.h"
#include "refusal.h"

namespace st {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Program symbolic() {
  Program program;
  program.sections.emplace_back();
  Builder b(program, 0);
  const Value x = b.input("x", DType::f32, {kBatch, 3, 4});
  const Value counters = b.load(program.add_slot({.name = "counters", .type = {DType::i64, {2}, {}}, .role = Role::control, .init = {}}));
  const Value flat = b.reshape(x, {-3, 4});
  const Value y = b.matmul(flat, b.parameter("w", {4, 5}, {}));
  const Value kept = b(Op::dropout, {b.reshape(y, {kBatch, 15}), counters}, {{"rate", 0.1}});
  const Value ones = b.fill({kBatch, 1}, 1);
  program.outputs = {{"y", b.add(kept, ones)}};
  return program;
}

TEST(Bind, PutsTheBatchIntoSlotsAttributesAndTypes) {
  const Program bound = bind(symbolic(), 8);
  EXPECT_EQ(bound.batch, 8);
  EXPECT_EQ(bound.slots[0].type.shape, Shape({8, 3, 4}));
  const Graph& graph = bound.sections[0].graph;
  for (const auto& node : graph.nodes) {
    for (const auto& type : node.out) EXPECT_FALSE(type.shape.is_symbolic()) << name_of(node.op);
    if (node.op == Op::fill) {
      EXPECT_EQ(node.attrs.ints("shape"), (Ints{8, 1}));
    }
    if (node.op == Op::dropout) {
      EXPECT_EQ(node.attrs.integer("sample_elements"), 15);
    }
  }
  EXPECT_EQ(graph.type(bound.outputs[0].value).shape, Shape({8, 15}));
  verify(bound, "bind");
}

TEST(Bind, LeavesTheSymbolicProgramAsItIs) {
  const Program program = symbolic();
  const Program one = bind(program, 1), two = bind(program, 2);
  EXPECT_EQ(program.batch, 0);
  EXPECT_TRUE(program.slots[0].type.shape.is_symbolic());
  EXPECT_EQ(one.slots[0].type.shape, Shape({1, 3, 4}));
  EXPECT_EQ(two.slots[0].type.shape, Shape({2, 3, 4}));
}

TEST(Bind, IsDoneOnce) {
  const Program bound = bind(symbolic(), 8);
  EXPECT_EQ(bind(bound, 8).batch, 8);
  EXPECT_THAT(refusal([&] { bind(bound, 4); }), HasSubstr("bound to a batch of 8, got 4"));
  EXPECT_THAT(refusal([] { bind(symbolic(), 0); }), HasSubstr("must be positive, got 0"));
}

TEST(Bind, NamesTheOpThatCannotTakeTheBatch) {
  Program program;
  program.sections.emplace_back();
  Builder b(program, 0);
  b.enter("wide");
  b.reshape(b.input("x", DType::f32, {kBatch, int64_t{1} << 40}), {-(int64_t{1} << 40)});
  EXPECT_THAT(refusal([&] { bind(program, int64_t{1} << 30); }), HasSubstr("overflows"));
}

}  // namespace
}  // namespace st
