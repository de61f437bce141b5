// The registry of host ops, and the shape rule that checks their callbacks.
#include "ir/host_op.h"

#include "ir/build.h"
#include "ir/print.h"
#include "ir/rules.h"
#include "ir/verify.h"
#include "refusal.h"

namespace st {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Type kBatchOfThree{DType::f32, {kBatch, 3}, {}};

HostOp same(const std::string& name, int32_t outputs = 1) {
  return {.name = name,
          .outputs = outputs,
          .shape =
              [](auto in, auto out) {
                for (HostType& type : out) type = in[0];
                return 0;
              },
          .forward = [](auto, auto) { return 0; },
          .backward = {}};
}

std::vector<Type> infer_by(const HostOps& ops, const std::string& name, const std::vector<Type>& in) {
  const Attrs attrs = *ops.attrs_of(name);
  return infer({.op = Op::host, .in = in, .attrs = attrs}, {});
}

/// The rule's error if the callback returns `type` for f32[batch, 3], or for a batch of four.
std::string refusal_of(const HostType& type, bool bound = false) {
  HostOps ops;
  HostOp liar = same("liar");
  liar.shape = [type](auto, auto out) {
    out[0] = type;
    return 0;
  };
  ops.add(std::move(liar));
  return refusal(Code::callback, [&] { infer_by(ops, "liar", {bound ? Type{DType::f32, {4, 3}, {}} : kBatchOfThree}); });
}

TEST(HostOps, AreFoundByNameInTheirContextAlone) {
  HostOps here, there;
  here.add(same("swirl"));
  EXPECT_NE(here.attrs_of("swirl"), nullptr);
  EXPECT_EQ(here.attrs_of("swir"), nullptr);
  EXPECT_EQ(there.attrs_of("swirl"), nullptr);
  there.add(same("swirl"));
  EXPECT_NE(here.attrs_of("swirl")->integer("id"), there.attrs_of("swirl")->integer("id"));
  EXPECT_THAT(here.names(), ElementsAre("swirl"));
}

TEST(HostOps, RefuseBadNamesAndThoseThatAreTaken) {
  HostOps ops;
  ops.add(same("swirl"));
  for (const char* name : {"", "2d", "_x", "a b", "a/b", "\xC3\xA4"})
    EXPECT_THAT(refusal(Code::invalid_argument, [&] { ops.add(same(name)); }), HasSubstr("letter")) << name;
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { ops.add(same(std::string(65, 'a'))); }), HasSubstr("64"));
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { ops.add(same("gelu")); }), HasSubstr("op of the library"));
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { ops.add(same("host")); }), HasSubstr("op of the library"));
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { ops.add(same("swirl", 2)); }), HasSubstr("already registered"));
  EXPECT_EQ(infer_by(ops, "swirl", {kBatchOfThree}).size(), 1U) << "the first one stays";
  ops.add(same(std::string(64, 'a')));
  ops.add(same("A.b-c_9"));
}

TEST(HostOps, RefuseMissingCallbacksAndWrongNumbersOfOutputs) {
  HostOps ops;
  HostOp no_shape = same("a"), no_forward = same("b");
  no_shape.shape = {};
  no_forward.forward = {};
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { ops.add(no_shape); }), HasSubstr("no shape callback"));
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { ops.add(no_forward); }), HasSubstr("no forward callback"));
  for (const int32_t outputs : {-1, 0, 9})
    EXPECT_THAT(refusal(Code::invalid_argument, [&] { ops.add(same("c", outputs)); }), HasSubstr("1 to 8"));
}

TEST(HostOps, AreGoneWithTheirContextUnlessHeld) {
  auto ops = std::make_unique<HostOps>();
  ops->add(same("swirl"));
  const int64_t id = ops->attrs_of("swirl")->integer("id");
  const auto held = host_op_of("test", id);
  ops.reset();
  EXPECT_EQ(held->name, "swirl");
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { host_op_of("test", id); }), HasSubstr("keep the context"));
  HostOps other;
  other.add(same("another"));
  EXPECT_NE(other.attrs_of("another")->integer("id"), id) << "an id is never used twice";
}

TEST(HostRule, PassesTheBatchOnAndBindsToIt) {
  HostOps ops;
  ops.add(same("twice", 2));
  EXPECT_THAT(infer_by(ops, "twice", {kBatchOfThree}), ElementsAre(kBatchOfThree, kBatchOfThree));
  const Type four{DType::f32, {4, 3}, {}};
  EXPECT_THAT(infer_by(ops, "twice", {four}), ElementsAre(four, four));
}

TEST(HostRule, RefusesTypesThatAreNone) {
  EXPECT_THAT(refusal_of({.dtype = 0, .rank = 0, .dims = {}}), HasSubstr("dtype 0"));  // the callback left it unset
  EXPECT_THAT(refusal_of({.dtype = 9, .rank = 0, .dims = {}}), HasSubstr("dtype 9"));
  EXPECT_THAT(refusal_of({.dtype = 1, .rank = 9, .dims = {}}), HasSubstr("rank 9"));
  EXPECT_THAT(refusal_of({.dtype = 1, .rank = -1, .dims = {}}), HasSubstr("rank -1"));
  EXPECT_THAT(refusal_of({.dtype = 1, .rank = 2, .dims = {-1, 3}}, true), HasSubstr("may be negative"));
  EXPECT_THAT(refusal_of({.dtype = 1, .rank = 1, .dims = {INT64_MIN}}), HasSubstr("more than 2^48 elements"));
  EXPECT_THAT(refusal_of({.dtype = 1, .rank = 2, .dims = {INT64_MAX, INT64_MAX}}), HasSubstr("more than 2^48 elements"));
  EXPECT_THAT(refusal_of({.dtype = 1, .rank = 2, .dims = {-1, 3}}, true), HasSubstr("\"liar\" gave output 0"));
}

TEST(HostRule, SaysWhatTheCallbackReturned) {
  HostOps ops;
  HostOp op = same("swirl");
  op.shape = [](auto, auto) { return 13; };
  ops.add(op);
  EXPECT_THAT(refusal(Code::callback, [&] { infer_by(ops, "swirl", {kBatchOfThree}); }),
              HasSubstr("\"swirl\" returned 13 for inputs f32[batch, 3]"));
}

TEST(HostRule, TakesAtMost32Inputs) {
  HostOps ops;
  ops.add(same("many"));
  EXPECT_EQ(infer_by(ops, "many", std::vector<Type>(32, kBatchOfThree)).size(), 1U);
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { infer_by(ops, "many", std::vector<Type>(33, kBatchOfThree)); }),
              HasSubstr("33 inputs"));
}

TEST(HostRule, OperandsThatAreCutAreRefused) {
  HostOps ops;
  ops.add(same("swirl"));
  const Attrs attrs = *ops.attrs_of("swirl");
  const std::vector<Type> in = {{DType::f32, {2, 3}, Layout::sharded(MeshAxis::data, 0)}};
  EXPECT_THAT(
      refusal(Code::invalid_argument, [&] { infer({.op = Op::host, .in = in, .attrs = attrs}, {.data = 2, .tensor = 1, .stage = 1}); }),
      HasSubstr("gathered"));
}

TEST(HostRule, BackwardGivesTheWantedInputsTypes) {
  HostOps ops;
  HostOp op = same("twice", 2);
  ops.add(op);
  Attrs attrs = *ops.attrs_of("twice");
  attrs.set("inputs", int64_t{2});
  attrs.set("wanted", Ints{1});
  const Type a{DType::f32, {3}, {}}, b{DType::f32, {5}, {}}, index{DType::i32, {3}, {}};
  const auto gradients = [&](const std::vector<Type>& in) { return infer({.op = Op::host_backward, .in = in, .attrs = attrs}, {}); };
  EXPECT_THAT(gradients({a, b, a, a, a, a}), ElementsAre(b));
  EXPECT_THAT(gradients({a, b, a, index, a}), ElementsAre(b)) << "an integer output has no gradient";
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { gradients({a, b, a, a, a}); }), HasSubstr("lacks the gradient of output 1"));
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { gradients({a, b, a, a, a, b}); }), HasSubstr("the same shape"));
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { gradients({a, b, a, a, a, a, a}); }), HasSubstr("too many"));
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { gradients({a, b, a}); }), HasSubstr("got 3 operands"));
  attrs.set("wanted", Ints{2});
  EXPECT_THAT(refusal(Code::invalid_argument, [&] { gradients({a, b, a, a, a, a}); }), HasSubstr("no input 2"));
}

struct OneNode {
  explicit OneNode(HostOps& ops) {
    program.sections.emplace_back();
    Builder b(program, 0);
    b.append(Op::host, {b.input("x", DType::f32, {kBatch, 3})}, *ops.attrs_of("swirl"));
  }
  Program program;
};

TEST(HostNode, IsPrintedByNameWithoutTheIdOfThisProcess) {
  HostOps ops;
  ops.add(same("swirl"));
  const std::string line = print(OneNode(ops).program);
  EXPECT_THAT(line, HasSubstr("host(%0) {name=swirl} : f32[batch, 3]"));
}

/// The verifier's error for a node made with this shape callback.
std::string refusal_of_node(decltype(HostOp::shape) shape) {
  HostOps ops;
  HostOp op = same("swirl");
  op.shape = std::move(shape);
  ops.add(op);
  const OneNode one(ops);
  return refusal(Code::callback, [&] { verify(one.program, "test"); });
}

TEST(HostNode, AShapeCallbackThatIsNoFunctionIsFoundOut) {
  const auto counts = [calls = std::make_shared<int64_t>(0)](auto in, auto out) {
    out[0] = in[0];
    out[0].dims[1] = ++*calls;
    return 0;
  };
  EXPECT_THAT(refusal_of_node(counts), HasSubstr("\"swirl\" returned different types"));
}

TEST(HostNode, AShapeCallbackThatFailsLaterIsTheCallbacksError) {
  const auto fails_later = [calls = std::make_shared<int64_t>(0)](auto in, auto out) {
    out[0] = in[0];
    return (*calls)++ == 0 ? 0 : 21;
  };
  EXPECT_THAT(refusal_of_node(fails_later), HasSubstr("returned 21"));
}

}  // namespace
}  // namespace st
