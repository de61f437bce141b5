// Each rule of the verifier is broken once, in a program that is right otherwise.
#include "ir/verify.h"

#include <functional>

#include "ir/build.h"
#include "refusal.h"

namespace st {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Ids {
  SlotId x, w, stash, gradient, m;
};

Ids add_slots(Program& program) {
  const Type weight{DType::f32, {3}, {}}, rows{DType::f32, {kBatch, 3}, {}};
  const auto add = [&](const char* name, const Type& type, Role role, SlotId of) {
    return program.add_slot({.name = name, .type = type, .role = role, .init = {}, .of = of});
  };
  const SlotId x = add("x", rows, Role::input, -1), w = add("w", weight, Role::parameter, -1);
  return {x, w, add("stash", rows, Role::stash, -1), add("w.gradient", weight, Role::gradient, w), add("w.m", weight, Role::optimizer, w)};
}

struct Verify : testing::Test {
  Program program;
  Ids ids{};

  // forward: y = x * w, loss = sum y; backward: dw = sum_to(x); update: w and m take something.
  Verify() {
    ids = add_slots(program);
    program.sections.resize(3);
    program.sections[1].phase = Phase::backward;
    program.sections[2].phase = Phase::update;
    Builder forward(program, 0);
    const Value x = forward.load(ids.x), w = forward.load(ids.w);
    const Value y = forward.mul(x, w);
    forward.store(y, ids.stash);
    program.outputs = {{"y", y}};
    program.loss_sum = forward.sum(y, {});
    Builder backward(program, 1);
    const Value dw = backward.sum_to(backward.load(ids.stash), {3});
    backward.store(dw, ids.gradient, When::first);
    backward.accumulate(dw, ids.gradient);
    Builder update(program, 2);
    const Value g = update.load(ids.gradient);
    update.store(g, ids.m);
    update.store(update.sub(update.load(ids.w), g), ids.w);
  }

  Graph& graph(size_t section) { return program.sections[section].graph; }
  std::string refused() {
    return refusal(Code::internal, [&] { verify(program, "a_pass"); });
  }
};

TEST_F(Verify, TheUnbrokenProgramPasses) {
  EXPECT_NO_THROW(verify(program, "a_pass"));
  EXPECT_NO_THROW(verify(bind(program, 4), "bind"));
  EXPECT_NO_THROW(verify(Program{}, "nothing"));
}

TEST_F(Verify, NamesThePassAndTheNode) {
  graph(0)[2].out[0].dtype = DType::f64;
  EXPECT_EQ(refused(), "after a_pass: forward: %2 = mul(%0, %1) : f64[batch, 3]: output 0 should be f32[batch, 3]");
}

TEST_F(Verify, EdgesPointBackwards) {
  graph(0)[2].in[1] = {2, 0};
  EXPECT_THAT(refused(), HasSubstr("input %2 does not come before it"));
  graph(0)[2].in[1] = {1, 3};
  EXPECT_THAT(refused(), HasSubstr("input %1 has no output 3"));
}

TEST_F(Verify, LayoutsAreWhatTheRulesInfer) {
  program.mesh.data = 2;
  graph(0)[2].out[0].layout = Layout::partial(MeshAxis::data);
  EXPECT_THAT(refused(), HasSubstr("output 0 should be f32[batch, 3]"));
}

TEST_F(Verify, ASumOfMismatchedLayoutsIsRefused) {
  program.mesh.data = 2;
  program.slots[static_cast<size_t>(ids.w)].type.layout = Layout::sharded(MeshAxis::data, 0);
  graph(0)[1].out[0].layout = Layout::sharded(MeshAxis::data, 0);
  EXPECT_THAT(refused(), AllOf(HasSubstr("mul"), HasSubstr("layouts do not fit along the data axis")));
}

TEST_F(Verify, OutputsAreAsManyAsTheRulesGive) {
  graph(0)[2].out.emplace_back();
  EXPECT_THAT(refused(), HasSubstr("it has 2 outputs, the rules give 1"));
}

TEST_F(Verify, AttributesAreTheRows) {
  graph(0)[4].attrs = {};
  EXPECT_THAT(refused(), HasSubstr("attributes are not those of the op's row"));
  graph(0)[4].attrs = {{"axis", 1}};
  EXPECT_THAT(refused(), HasSubstr("no attribute \"axis\""));
}

TEST_F(Verify, SlotsExist) {
  graph(0)[0].reads[0] = 77;
  EXPECT_THAT(refused(), HasSubstr("slot 77 does not exist"));
}

TEST_F(Verify, OnlySlotOpsNameSlots) {
  graph(0)[2].reads = {ids.w};
  EXPECT_THAT(refused(), HasSubstr("it reads 1 slots"));
  graph(0)[2].reads = {};
  graph(0)[3].writes = {};
  EXPECT_THAT(refused(), HasSubstr("it writes 0 slots"));
}

TEST_F(Verify, SlotsAreWrittenWithTheirOwnType) {
  program.slots[static_cast<size_t>(ids.gradient)].type.dtype = DType::bf16;
  graph(2)[0].out[0].dtype = DType::bf16;
  EXPECT_THAT(refused(), HasSubstr("the value is f32[3], slot \"w.gradient\" is bf16[3]"));
}

TEST_F(Verify, AnOptimizerWritesWhatItReads) {
  Builder update(program, 2);
  const Value g{0, 0};
  update.update(Op::lion, {g, update.fill({}, 1), update.fill({}, 0, DType::boolean), update.fill({2}, 1, DType::f64)}, {ids.w, ids.m}, {});
  EXPECT_NO_THROW(verify(program, "update"));
  graph(2).nodes.back().writes = {ids.w};
  EXPECT_THAT(refused(), HasSubstr("an optimizer reads and writes its slots"));
}

TEST_F(Verify, ParametersAndMomentsAreWrittenByUpdatesOnly) {
  Builder backward(program, 1);
  backward.store(backward.load(ids.w), ids.w);
  EXPECT_THAT(refused(), HasSubstr("only update sections write \"w\", a parameter"));
  graph(1).nodes.back().writes = {ids.m};
  EXPECT_THAT(refused(), HasSubstr("only update sections write \"w.m\", a optimizer"));
}

TEST_F(Verify, TheHostWritesInputs) {
  Builder forward(program, 0);
  forward.store({0, 0}, ids.x);
  EXPECT_THAT(refused(), HasSubstr("\"x\" is a input, which the host writes"));
}

TEST_F(Verify, AStashIsStoredOnce) {
  Builder forward(program, 0);
  forward.store({0, 0}, ids.stash);
  EXPECT_THAT(refused(), HasSubstr("stash \"stash\" must be stored once"));
}

TEST_F(Verify, AStashIsStoredBeforeItIsLoaded) {
  std::swap(program.sections[0].phase, program.sections[1].phase);
  program.outputs.clear();
  program.loss_sum = {};
  EXPECT_THAT(refused(), HasSubstr("\"stash\" is loaded before it is stored"));
}

TEST_F(Verify, TheOrderOfTheListOfSectionsDoesNotMatter) {
  std::swap(program.sections[0], program.sections[2]);
  EXPECT_NO_THROW(verify(program, "a_pass"));
}

TEST_F(Verify, AMicroBatchsSlotsDoNotReachTheUpdate) {
  Builder update(program, 2);
  update.load(ids.stash);
  EXPECT_THAT(refused(), HasSubstr("lives in a micro-batch, not in the update"));
}

TEST_F(Verify, AGradientsFirstWriteIsAStoreOfTheFirstMicroBatch) {
  Node& store = graph(1)[2];
  ASSERT_EQ(store.op, Op::store);
  store.when = When::rest;
  EXPECT_THAT(refused(), HasSubstr("must be a store of the first micro-batch"));
  store.when = When::first;
  store.op = Op::accumulate;
  EXPECT_THAT(refused(), HasSubstr("must be a store of the first micro-batch"));
}

TEST_F(Verify, AGradientThatNobodyWritesIsNotLoaded) {
  graph(1).nodes.resize(2);
  EXPECT_THAT(refused(), HasSubstr("\"w.gradient\" is loaded before it is stored"));
}

TEST_F(Verify, AnUpdateRunsOnceAStep) {
  graph(2)[1].when = When::last;
  EXPECT_THAT(refused(), HasSubstr("an update runs once a step"));
}

TEST_F(Verify, NamesAreUnique) {
  program.slots[1].name = "x";
  EXPECT_THAT(refused(), HasSubstr("two slots are named \"x\""));
  program.slots[1].name = "";
  EXPECT_THAT(refused(), HasSubstr("a parameter slot has no name"));
  program.slots[1].name = "w";
  program.outputs.push_back(program.outputs[0]);
  EXPECT_THAT(refused(), HasSubstr("two outputs are named \"y\""));
  program.outputs.pop_back();
  program.regions = {{}, {.name = "a", .parent = 0}, {.name = "a", .parent = 0}};
  EXPECT_THAT(refused(), HasSubstr("two regions are named \"a\""));
}

TEST_F(Verify, SectionsAreUnique) {
  program.sections.push_back({.graph = {}, .phase = Phase::update});
  EXPECT_THAT(refused(), HasSubstr("two sections are update of stage 0, chunk 0"));
}

TEST_F(Verify, RegionsExistInsideEarlierOnes) {
  graph(0)[2].region = 5;
  EXPECT_THAT(refused(), HasSubstr("region 5 does not exist"));
  graph(0)[2].region = 0;
  program.regions.push_back({.name = "a", .parent = 1});
  EXPECT_THAT(refused(), HasSubstr("\"a\" is not inside an earlier one"));
}

TEST_F(Verify, AGradientIsOfAParameter) {
  program.slots[static_cast<size_t>(ids.gradient)].of = ids.x;
  EXPECT_THAT(refused(), HasSubstr("\"w.gradient\", a gradient, names no parameter"));
  program.slots[static_cast<size_t>(ids.gradient)].of = -1;
  EXPECT_THAT(refused(), HasSubstr("names no parameter"));
}

TEST_F(Verify, OnlyInputsAndStashesDependOnTheBatch) {
  program.slots[static_cast<size_t>(ids.w)].type.shape = {kBatch};
  EXPECT_THAT(refused(), HasSubstr("a parameter does not depend on the batch"));
}

TEST_F(Verify, NothingIsSymbolicOnceTheBatchIsBound) {
  program.batch = 4;
  EXPECT_THAT(refused(), HasSubstr("in a program that is bound to a batch of 4"));
}

TEST_F(Verify, TheLossIsAFloatingScalarOfTheLastForwardSection) {
  program.loss_sum = {2, 0};
  EXPECT_THAT(refused(), HasSubstr("the loss must be a floating scalar, it is f32[batch, 3]"));
  program.loss_sum = {99, 0};
  EXPECT_THAT(refused(), HasSubstr("the loss is %99, which the last forward section does not have"));
  program.loss_sum = {};
  program.loss_count = {4, 0};
  EXPECT_THAT(refused(), HasSubstr("the loss has a count but no sum"));
  program.loss_count = {};
  program.outputs[0].value = {3, 0};
  EXPECT_THAT(refused(), HasSubstr("output y is output 0 of %3, which has 0"));
}

/// Packs a weight [3, 5] in the forward section, and reads it behind.
struct VerifyPacked : Verify {
  SlotId packed = -1;

  VerifyPacked() {
    Builder forward(program, 0);
    const Value weight = forward.parameter("matrix", {3, 5}, {});
    packed = program.add_slot({.name = "packed", .type = {DType::u8, {64}, {}}, .role = Role::packed, .init = {}});
    graph(0).nodes.push_back(
        {.op = Op::pack, .in = {weight}, .out = {}, .reads = {}, .writes = {packed}, .attrs = {}, .when = When::first});
    graph(0).nodes.back().attrs = make_attrs(Op::pack, {{"rows", 2}});
    forward.load(packed);
  }
};

TEST_F(VerifyPacked, TheFirstMicroBatchPacksBeforeAnyoneReads) {
  EXPECT_NO_THROW(verify(program, "a_pass"));
  Node& pack = *(graph(0).nodes.end() - 2);
  pack.when = When::rest;
  EXPECT_THAT(refused(), HasSubstr("must be made in the first micro-batch"));
  pack.when = When::first;
  std::swap(pack, graph(0).nodes.back());
  EXPECT_THAT(refused(), HasSubstr("\"packed\" is loaded before it is stored"));
}

TEST_F(VerifyPacked, OnlyPackWritesAPackedSlot) {
  (graph(0).nodes.end() - 2)->writes = {ids.stash};
  EXPECT_THAT(refused(), HasSubstr("only pack writes a packed slot, and nothing else; \"stash\" is a stash"));
}

}  // namespace
}  // namespace st
