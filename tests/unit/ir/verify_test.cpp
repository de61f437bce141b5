// Breaks each rule of the verifier once, in an otherwise valid program.
#include "ir/verify.h"

#include "ir/build.h"
#include "refusal.h"

namespace st {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr AxisLayout kFlat{.kind = AxisLayout::Kind::flat, .where = 0, .grain = 1};

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

  // forward: y = x * w, loss = sum y; backward: dw = sum_to(x); update: writes w and m.
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
  Node& node(size_t section, size_t n) { return graph(section).nodes[n]; }
  Slot& slot(SlotId id) { return program.slot(id); }
  Value load(int32_t section, SlotId from) { return Builder(program, section).load(from); }
  void store(int32_t section, Value value, SlotId to) { Builder(program, section).store(value, to); }
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
  node(0, 2).out[0].dtype = DType::f64;
  EXPECT_EQ(refused(), "after a_pass: forward: %2 = mul(%0, %1) : f64[batch, 3]: output 0 should be f32[batch, 3]");
}

TEST_F(Verify, ASumOfMismatchedLayoutsIsRefused) {
  program.mesh.data = 2;
  slot(ids.w).type.layout = Layout::sharded(MeshAxis::data, 0);
  node(0, 1).out[0].layout = Layout::sharded(MeshAxis::data, 0);
  EXPECT_THAT(refused(), AllOf(HasSubstr("mul"), HasSubstr("layouts do not fit along the data axis")));
}

TEST_F(Verify, AnOptimizerWritesWhatItReads) {
  Builder update(program, 2);
  const Value g{0, 0};
  update.update(Op::lion, {g, update.fill({}, 1), update.fill({}, 0, DType::boolean), update.fill({2}, 1, DType::f64)}, {ids.w, ids.m}, {});
  EXPECT_NO_THROW(verify(program, "update"));
  graph(2).nodes.back().writes = {ids.w};
  EXPECT_THAT(refused(), HasSubstr("an optimizer must read and write the same slots"));
}

TEST_F(Verify, TheOrderOfTheListOfSectionsDoesNotMatter) {
  std::swap(program.sections[0], program.sections[2]);
  EXPECT_NO_THROW(verify(program, "a_pass"));
}

TEST_F(Verify, TheSectionOfAPhaseIsNotFoundWhereStagesHaveOneEach) {
  program.sections.push_back({.graph = {}, .phase = Phase::backward, .stage = 1});
  EXPECT_EQ(program.find(Phase::forward), &program.sections[0]);
  EXPECT_EQ(program.find(Phase::backward, 1, 0), &program.sections[3]);
  EXPECT_EQ(program.find(Phase::backward, 1, 1), nullptr);
  EXPECT_EQ(program.find(Phase::backward_input), nullptr);
  EXPECT_THAT(refusal(Code::internal, [&] { program.find(Phase::backward); }),
              HasSubstr("several backward sections, of stage 0, chunk 0 and of stage 1, chunk 0"));
}

struct Broken {
  const char* rule;
  void (*change)(Verify&);
  const char* words;
};

class BrokenRule : public Verify, public testing::WithParamInterface<Broken> {};

TEST_P(BrokenRule, IsRefused) {
  GetParam().change(*this);
  EXPECT_THAT(refused(), HasSubstr(GetParam().words));
}

const Broken kBroken[] = {
    {"EdgesPointBackwards",
     [](Verify& v) {
       v.node(0, 2).in[1] = {2, 0};
     },
     "input %2 does not come before it"},
    {"EdgesAreOfOutputs",
     [](Verify& v) {
       v.node(0, 2).in[1] = {1, 3};
     },
     "input %1 has no output 3"},
    {"LayoutsAreWhatTheRulesInfer",
     [](Verify& v) {
       v.program.mesh.data = 2;
       v.node(0, 2).out[0].layout = Layout::partial(MeshAxis::data);
     },
     "output 0 should be f32[batch, 3]"},
    {"OutputsAreAsManyAsTheRulesGive", [](Verify& v) { v.node(0, 2).out.emplace_back(); }, "it has 2 outputs, the rules give 1"},
    {"AttributesAreAllOfTheRow", [](Verify& v) { v.node(0, 4).attrs = {}; }, "attributes are not those of the op's row"},
    {"AttributesAreOfTheRow",
     [](Verify& v) {
       v.node(0, 4).attrs = {{"axis", 1}};
     },
     "attribute \"axis\" is unknown"},
    {"SlotsExist", [](Verify& v) { v.node(0, 0).reads[0] = 77; }, "slot 77 does not exist"},
    {"OnlySlotOpsReadSlots", [](Verify& v) { v.node(0, 2).reads = {v.ids.w}; }, "it reads 1 slots"},
    {"AStoreWritesASlot", [](Verify& v) { v.node(0, 3).writes = {}; }, "it writes 0 slots"},
    {"SlotsAreWrittenWithTheirOwnType", [](Verify& v) { v.slot(v.ids.gradient).type.dtype = v.node(2, 0).out[0].dtype = DType::bf16; },
     "the value is f32[3], slot \"w.gradient\" is bf16[3]"},
    {"ParametersAreWrittenByUpdatesOnly", [](Verify& v) { v.store(1, v.load(1, v.ids.w), v.ids.w); },
     "only update sections write \"w\", a parameter"},
    {"MomentsAreWrittenByUpdatesOnly", [](Verify& v) { v.store(1, v.load(1, v.ids.w), v.ids.m); },
     "only update sections write \"w.m\", a optimizer"},
    {"TheHostWritesInputs",
     [](Verify& v) {
       v.store(0, {0, 0}, v.ids.x);
     },
     "\"x\" is a input, which the host writes"},
    {"AStashIsStoredOnce",
     [](Verify& v) {
       v.store(0, {0, 0}, v.ids.stash);
     },
     "stash \"stash\" must be stored once"},
    {"AStashIsStoredBeforeItIsLoaded",
     [](Verify& v) {
       std::swap(v.program.sections[0].phase, v.program.sections[1].phase);
       v.program.outputs.clear();
       v.program.loss_sum = {};
     },
     "\"stash\" is loaded before it is stored"},
    {"AMicroBatchsSlotsDoNotReachTheUpdate", [](Verify& v) { v.load(2, v.ids.stash); }, "lives in a micro-batch, not in the update"},
    {"AGradientsFirstWriteIsOfTheFirstMicroBatch", [](Verify& v) { v.node(1, 2).when = When::rest; },
     "must be a store in the first micro-batch"},
    {"AGradientsFirstWriteIsAStore", [](Verify& v) { v.node(1, 2).op = Op::accumulate; }, "must be a store in the first micro-batch"},
    {"AGradientThatNobodyWritesIsNotLoaded", [](Verify& v) { v.graph(1).nodes.resize(2); }, "\"w.gradient\" is loaded before it is stored"},
    {"AnUpdateRunsOnceAStep", [](Verify& v) { v.node(2, 1).when = When::last; }, "an update runs once a step"},
    {"NamesOfSlotsAreUnique", [](Verify& v) { v.slot(1).name = "x"; }, "two slots are named \"x\""},
    {"SlotsAreFoundByName", [](Verify& v) { v.slot(1).name = "y"; }, "slot \"y\" is not found by its name"},
    {"SlotsHaveNames", [](Verify& v) { v.slot(1).name = ""; }, "a parameter slot has no name"},
    {"NamesOfOutputsAreUnique",
     [](Verify& v) {
       v.program.outputs.push_back({"y", {2, 0}});
     },
     "two outputs are named \"y\""},
    {"NamesOfRegionsAreUnique",
     [](Verify& v) {
       v.program.regions = {{}, {.name = "a", .parent = 0}, {.name = "a", .parent = 0}};
     },
     "two regions are named \"a\""},
    {"SectionsAreUnique", [](Verify& v) { v.program.sections.push_back({.graph = {}, .phase = Phase::update}); },
     "two sections are update of stage 0, chunk 0"},
    {"RegionsExist", [](Verify& v) { v.node(0, 2).region = 5; }, "region 5 does not exist"},
    {"RegionsAreInsideEarlierOnes", [](Verify& v) { v.program.regions.push_back({.name = "a", .parent = 1}); },
     "\"a\" has no earlier parent"},
    {"AGradientIsOfAParameter", [](Verify& v) { v.slot(v.ids.gradient).of = v.ids.x; },
     "\"w.gradient\", a gradient, does not name its parameter"},
    {"AGradientIsOfASlot", [](Verify& v) { v.slot(v.ids.gradient).of = -1; }, "does not name its parameter"},
    {"OnlyInputsAndStashesDependOnTheBatch", [](Verify& v) { v.slot(v.ids.w).type.shape = {kBatch}; },
     "a parameter must not depend on the batch"},
    {"NothingIsSymbolicOnceTheBatchIsBound", [](Verify& v) { v.program.batch = 4; }, "in a program bound to a batch of 4"},
    {"TheLossIsAFloatingScalar",
     [](Verify& v) {
       v.program.loss_sum = {2, 0};
     },
     "the loss must be a floating scalar, it is f32[batch, 3]"},
    {"TheLossIsOfTheLastForwardSection",
     [](Verify& v) {
       v.program.loss_sum = {99, 0};
     },
     "the loss is %99, which the last forward section does not have"},
    {"ACountIsOfASum",
     [](Verify& v) {
       v.program.loss_sum = {};
       v.program.loss_count = {4, 0};
     },
     "the loss has a count but no sum"},
    {"OutputsExist",
     [](Verify& v) {
       v.program.outputs[0].value = {3, 0};
     },
     "output y is output 0 of %3, which has 0"},
    {"OnlyAParameterHasOwners", [](Verify& v) { v.slot(v.ids.m).sums = kFlat; },
     "\"w.m\", a optimizer, has owners, which only a parameter has"},
    {"AShardIsUpdatedByWhoSumsItsGradient",
     [](Verify& v) {
       v.slot(v.ids.w).sums = {.kind = AxisLayout::Kind::flat, .where = 1, .grain = 1};
       v.slot(v.ids.w).update = kFlat;
     },
     "parameter \"w\" is updated as flat(1, 0), its gradient summed as flat(1, 1)"},
    {"AFlatTensorHasAGrain",
     [](Verify& v) {
       v.slot(v.ids.w).sums = v.slot(v.ids.m).type.layout[MeshAxis::data] = {.kind = AxisLayout::Kind::flat, .where = 0, .grain = 0};
     },
     "\"w.m\" is f32[3]{data:flat(0, 0)} on a mesh of 1 data ranks"},
    {"TheTurnIsARanks",
     [](Verify& v) {
       v.slot(v.ids.w).sums = v.slot(v.ids.m).type.layout[MeshAxis::data] = {.kind = AxisLayout::Kind::flat, .where = 1, .grain = 1};
     },
     "\"w.m\" is f32[3]{data:flat(1, 1)} on a mesh of 1 data ranks"},
    {"StateIsCutOnlyIfItsGradientIs", [](Verify& v) { v.slot(v.ids.m).type.layout[MeshAxis::data] = kFlat; },
     "\"w.m\", f32[3]{data:flat(1, 0)}, is not cut as the gradient of its parameter"},
    {"AGradientIsCutAsItIsSummed",
     [](Verify& v) {
       v.slot(v.ids.w).sums = {.kind = AxisLayout::Kind::flat, .where = 0, .grain = 2};
       v.slot(v.ids.gradient).type.layout[MeshAxis::data] = kFlat;
     },
     "\"w.gradient\", f32[3]{data:flat(1, 0)}, is not cut as the gradient of \"w\", flat(2, 0)"},
};

INSTANTIATE_TEST_SUITE_P(Verify, BrokenRule, testing::ValuesIn(kBroken), [](const auto& test) { return std::string(test.param.rule); });

/// Packs a weight [3, 5] in the forward section, then reads it.
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
  EXPECT_THAT(refused(), HasSubstr("must be written in the first micro-batch"));
  pack.when = When::first;
  std::swap(pack, graph(0).nodes.back());
  EXPECT_THAT(refused(), HasSubstr("\"packed\" is loaded before it is stored"));
}

TEST_F(VerifyPacked, OnlyPackWritesAPackedSlot) {
  (graph(0).nodes.end() - 2)->writes = {ids.stash};
  EXPECT_THAT(refused(), HasSubstr("pack must write packed slots, and only pack may; \"stash\" is a stash"));
}

}  // namespace
}  // namespace st
