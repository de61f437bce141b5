#include "plan/memory_plan.h"

#include <algorithm>
#include <set>

#include "models/mlp.h"
#include "order_in_flight.h"
#include "passes/accumulate.h"
#include "passes/autocast.h"
#include "passes/autodiff.h"
#include "passes/for_inference.h"
#include "passes/pack_weights.h"
#include "passes/pipeline_cut.h"
#include "passes/scale_loss.h"
#include "passes/split_backward.h"
#include "plan/ordering.h"
#include "random_program.h"
#include "scoped_program.h"
#include "shadow_memory.h"
#include "small_program.h"
#include "thrown_error.h"

namespace st {
namespace {

/// Workspace of the size of the node's first output.
int64_t some_workspace(const Program&, const Section&, const Node& node) { return node.out.empty() ? 0 : node.out[0].bytes(); }

Plan planned(const Program& program, const StepOrder& order) {
  return make_plan(program, memory_plan(program, order, some_workspace), order);
}

Plan planned(const Program& program, int64_t micro_batches) { return planned(program, in_turn(program, micro_batches)); }

Plan inference_of(const Program& model, int64_t batch, const std::vector<std::string>& outputs, bool loss) {
  Program program = bind(model, batch);
  for_inference(program, outputs, loss);
  return planned(std::move(program), 1);
}

std::string first_of(const std::vector<std::string>& faults) {
  return faults.empty() ? "" : text(faults.size(), " faults, the first: ", faults[0]);
}

TEST(MemoryPlan, NeverOverwritesWhatIsStillReadInRandomGraphs) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Program model = random_program(seed, 4 + static_cast<int>(seed));
    for (const int64_t micro_batches : {1, 2})
      EXPECT_EQ(first_of(faults_of(planned(training_program(model, 3, micro_batches), micro_batches))), "") << "seed " << seed;
    EXPECT_EQ(first_of(faults_of(inference_of(model, 3, {"prediction"}, true))), "") << "seed " << seed;
  }
}

TEST(MemoryPlan, NeverOverwritesWhatIsStillReadInAGptAndAnMlp) {
  const Program mlp = build_mlp({.inputs = 3, .hidden = {5, 7}, .outputs = 2, .activation = "gelu", .loss = "mse"});
  for (const Program& model : {small_gpt(), mlp})
    for (const double dropout : {0.0, 0.1})
      for (const int64_t micro_batches : {1, 3})
        for (const int64_t batch : {1, 3})
          EXPECT_EQ(first_of(faults_of(planned(training_program(model, batch, micro_batches, 1, dropout), micro_batches))), "");
  EXPECT_EQ(first_of(faults_of(inference_of(small_gpt(), 3, {"logits"}, true))), "");
  EXPECT_EQ(first_of(faults_of(inference_of(small_gpt(), 1, {}, true))), "");
}

TEST(MemoryPlan, KeepsAPackedWeightForAllMicroBatches) {
  for (const Program& model : {small_gpt(), random_program(7, 40)}) {
    Program program = training_program(model, 3, 4);
    pack_weights(program, 4,
                 [](const Program&, const Section& section, const Node& node) { return section.graph.type(node.in[1]).bytes(); });
    const Plan plan = planned(std::move(program), 4);
    EXPECT_GT(plan.memory.of(Arena::packed), 0);
    EXPECT_EQ(first_of(faults_of(plan)), "");
  }
}

TEST(MemoryPlan, KeepsEachOutputToTheEndAlsoWhenItIsCopied) {
  SmallProgram s(1);
  Builder& b = s.b;
  const Value y = b(Op::exp, {b.input("z", DType::f32, {64})});
  s.program.outputs = {{"x", b.input("x", DType::f32, {64})}, {"again", y}, {"y", y}, {"other", b(Op::exp, {y})}};
  const std::vector<std::string> outputs = {"x", "again", "y", "other"};
  for_inference(s.program, outputs, false);
  const Plan plan = planned(s.program, 1);
  EXPECT_EQ(first_of(faults_of(plan)), "");
  EXPECT_EQ(plan.memory.of(Arena::stash), 4 * 256) << "nothing can share";
}

TEST(MemoryPlan, KeepsAStashFromTheMakingOfItsValueToItsLastUseUnderAnyName) {
  SmallProgram s(1);
  Builder& b = s.b;
  const auto stash = [&](const std::string& name) {
    return s.program.add_slot({.name = name, .type = {.dtype = DType::f32, .shape = {64}, .layout = {}}, .role = Role::stash, .init = {}});
  };
  const SlotId first = stash("first"), second = stash("second"), third = stash("third");
  const Value x = b.input("x", DType::f32, {64});
  const Value one = b(Op::exp, {x}), two = b(Op::sqrt, {x});
  b.store(one, first);
  const Value sum = b.add(b.load(first), x);  // `first` is not loaded again, but `two` exists already and `one` is read below
  b.store(two, second);
  const Value three = b.mul(b.load(second), sum);
  b.store(three, third);
  s.program.outputs.push_back({"y", b.sum(b.add(b.add(one, b.load(third)), x), {})});
  const std::vector<std::string> outputs = {"y"};
  for_inference(s.program, outputs, false);
  EXPECT_EQ(first_of(faults_of(planned(s.program, 1))), "");
}

TEST(MemoryPlan, PlacesACopiedOutputApartFromWhatIsReadAfterTheCopy) {
  SmallProgram s(1);
  Builder& b = s.b;
  const auto slot = [&](const std::string& name, Role role) {
    return s.program.add_slot({.name = name, .type = {.dtype = DType::f32, .shape = {64}, .layout = {}}, .role = role, .init = {}});
  };
  const SlotId kept = slot("kept", Role::stash), y_again = slot("y again", Role::output), y = slot("y", Role::output);
  const Value x = b.input("x", DType::f32, {64});
  b.store(b(Op::exp, {x}), kept);
  const Value root = b(Op::sqrt, {x});
  b.store(root, y);
  b.store(root, y_again);
  b.store(b.mul(b.load(kept), root), slot("z", Role::output));
  EXPECT_EQ(first_of(faults_of(planned(s.program, 1))), "");
}

TEST(MemoryPlan, GivesEveryMicroBatchInFlightItsOwnStash) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Program program = training_program(random_program(seed, 30), 3, 4);
    const int64_t one = planned(program, 4).memory.of(Arena::stash);
    for (const int32_t in_flight : {1, 2, 3, 4}) {
      const StepOrder order = order_in_flight(program, 4, in_flight);
      const Plan plan = planned(program, order);
      EXPECT_EQ(first_of(faults_of(plan, order)), "") << "seed " << seed << ", " << in_flight << " in flight";
      EXPECT_EQ(plan.memory.of(Arena::stash), in_flight * one);
      EXPECT_EQ(plan.memory.of(Arena::activations), planned(program, 4).memory.of(Arena::activations));
    }
  }
}

/// Weights are packed before the stage waits for its first message, but for those of sections that have run.
void expect_early_packs(const Plan& plan, const std::string& where) {
  const auto op_of = [&](const Instruction& at) { return plan.program.sections[static_cast<size_t>(at.section)].graph[at.node].op; };
  const auto first = std::ranges::find(plan.instructions, Op::receive, op_of);
  for (auto at = first; at != plan.instructions.end(); ++at) EXPECT_NE(op_of(*at), Op::pack) << where;
  std::set<int32_t> ran;
  for (auto at = plan.instructions.begin(); at != first; ++at) {
    EXPECT_TRUE(!at->is_early() || (at->within == first->section && !ran.contains(at->section))) << where;
    if (!at->is_early()) ran.insert(at->run());
  }
}

/// Chunks share memory only where that takes less than buffers of their own.
bool chunks_share(const MemoryLayout& memory) {
  int64_t own = 0;
  bool any = false;
  for (const StashBuffers& buffers : memory.stash) {
    own += buffers.bytes * buffers.count;
    any = any || !buffers.begins.empty();
  }
  EXPECT_TRUE(any ? memory.of(Arena::stash) < own : memory.of(Arena::stash) == own);
  return any;
}

/// How many slots are received for the section alone that receives them: such have no buffer for each micro-batch.
int64_t received_for_a_run(const Plan& plan) {
  std::vector<std::set<size_t>> sections(plan.program.slots.size());
  std::set<SlotId> received, sent;
  for (size_t s = 0; s < plan.program.sections.size(); ++s) {
    const Graph& graph = plan.program.sections[s].graph;
    for (const Node& node : graph.nodes) {
      for (const auto* slots : {&node.reads, &node.writes})
        for (const SlotId slot : *slots) sections[static_cast<size_t>(slot)].insert(s);
      if (node.op == Op::receive) received.insert(node.writes[0]);
      if (node.op == Op::send) sent.insert(graph.slot_behind(node.in[0]));
    }
  }
  int64_t count = 0;
  for (const SlotId slot : received) {
    if (plan.program.slot(slot).role != Role::stash || sent.contains(slot)) continue;
    const bool is_of_a_run = sections[static_cast<size_t>(slot)].size() == 1;
    EXPECT_EQ(plan.memory.slots[static_cast<size_t>(slot)].arena, is_of_a_run ? Arena::activations : Arena::stash);
    count += is_of_a_run ? 1 : 0;
  }
  return count;
}

/// Chunks whose sections alternate, and halves of backward in another order than the program's; weights are copied and packed, too.
TEST(MemoryPlan, OfStagesKeepsWhatTheirSchedulesReadLater) {
  constexpr int32_t kMicroBatches = 5;
  int64_t early = 0, shared = 0, received = 0;
  for (uint64_t seed = 0; seed < 12; ++seed)
    for (const auto& [name, chunks] : {std::pair{"1f1b", 1}, {"interleaved", 2}, {"interleaved", 3}, {"zb-h1", 1}, {"zb-v", 2}}) {
      PipelineSchedule schedule = make_schedule(name, 2, chunks, kMicroBatches);
      PipelineParts parts;
      for (int32_t part = 0; part < schedule.parts(); ++part) parts.stage_of.push_back(schedule.stage_of(part));
      for (int32_t stage = 0; stage < 2; ++stage) {
        Program program = bind(scoped_program(seed, 6), 3);
        program.mesh.stage = 2;
        program.stage = stage;
        if (seed % 2 == 1) autocast(program, DType::bf16, When::first);
        scale_loss(program, kMicroBatches);
        autodiff(program);
        const Error refusal = error_of([&] { pipeline_cut(program, parts); });
        if (refusal.code() == Code::invalid_argument) continue;  // a stage without parameters
        if (schedule.actions[0].back().phase == Phase::backward_weight) split_backward(program);
        accumulate(program, kMicroBatches);
        pack_weights(program, kMicroBatches, [](const Program&, const Section&, const Node&) { return int64_t{640}; });
        const StepOrder order = in_pipeline(program, schedule);
        const Plan plan = planned(program, order);
        const std::string where = text(name, ", seed ", seed, ", stage ", stage);
        EXPECT_EQ(first_of(faults_of(plan, order)), "") << where;
        expect_early_packs(plan, where);
        EXPECT_TRUE(ordering_of(plan).holds()) << where << "\n" << print_ordering(plan);
        shared += chunks_share(plan.memory) ? 1 : 0;
        received += received_for_a_run(plan);
        early += std::ranges::count_if(plan.instructions, &Instruction::is_early);
        for (int32_t chunk = 0; chunk < chunks; ++chunk) {
          const int32_t read_by_others = chunk + 1 < chunks ? 1 : 0;  // inputs, and values that the next chunk here takes
          EXPECT_LE(in_flight(program, order)[static_cast<size_t>(chunk)], in_flight(schedule, stage, chunk) + read_by_others);
        }
      }
    }
  EXPECT_GT(early, 0);
  EXPECT_GT(shared, 0);
  EXPECT_GT(received, 0);
}

TEST(MemoryPlan, CheckerSeesOneStashForTwoMicroBatches) {
  const Program program = training_program(small_gpt(), 3, 2);
  const StepOrder order = order_in_flight(program, 2, 2);
  Plan plan = planned(program, order);
  plan.memory.stash[0].count = 1;
  EXPECT_NE(first_of(faults_of(plan, order)), "");
}

TEST(MemoryPlan, CheckerSeesOverlapsAndOperandsOverwritten) {  // proves that the checker can fail
  Plan plan = planned(training_program(small_gpt(), 3, 1), 1);
  for (auto& section : plan.memory.values)
    for (auto& node : section)
      for (Place& place : node)
        if (place.arena == Arena::activations) place.offset = 0;
  EXPECT_NE(first_of(faults_of(plan)), "");
}

TEST(MemoryPlan, PlacesLastingSlotsAlikeForEveryBatch) {
  const Program model = small_gpt();
  const Plan one = planned(training_program(model, 1, 1, 1, 0.1), 1), many = planned(training_program(model, 7, 4, 1, 0.1), 4);
  ASSERT_EQ(one.program.slots.size(), many.program.slots.size());
  for (size_t s = 0; s < one.program.slots.size(); ++s) {
    const Role role = one.program.slots[s].role;
    if (role != Role::parameter && role != Role::gradient && role != Role::optimizer) continue;
    EXPECT_EQ(one.program.slots[s].name, many.program.slots[s].name);
    EXPECT_EQ(one.memory.slots[s], many.memory.slots[s]) << one.program.slots[s].name;
  }
  for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer}) EXPECT_EQ(one.memory.of(arena), many.memory.of(arena));
  const Plan forward = inference_of(model, 2, {"logits"}, false);
  for (size_t s = 0; s < model.slots.size(); ++s)
    if (model.slots[s].role == Role::parameter) {
      EXPECT_EQ(forward.memory.slots[s], one.memory.slots[s]);
    }
}

TEST(MemoryPlan, CountsParametersGradientsAndMomentsExactly) {
  const Program model = build_mlp({.inputs = 3, .hidden = {5}, .outputs = 2, .activation = "relu", .loss = "mse"});
  const Plan plan = planned(training_program(model, 4, 1), 1);
  // Weights 3x5 and 5x2, biases 5 and 2, in fp32: 60, 40, 20 and 8 bytes, each rounded up to 64.
  EXPECT_EQ(plan.memory.of(Arena::parameters), 4 * 64);
  EXPECT_EQ(plan.memory.of(Arena::gradients), 4 * 64);
  EXPECT_EQ(plan.memory.of(Arena::optimizer), 8 * 64);
}

TEST(MemoryPlan, OneMicroBatchMakesGradientsInTheirSlots) {
  const Plan plan = planned(training_program(small_gpt(), 2, 1), 1);
  for (const Instruction& i : plan.instructions) {
    const Node& node = plan.program.sections[static_cast<size_t>(i.section)].graph[i.node];
    if (node.op != Op::store) continue;
    const Slot& slot = slot_of(plan.program, node.writes[0]);
    EXPECT_TRUE(slot.role != Role::gradient && slot.role != Role::stash) << slot.name;
  }
}

// Issue 3's bound. Batch 8 of 64 tokens, so that activations dominate over weights.
TEST(MemoryPlan, TakesAtMostSixtyPercentOfTheNoReuseSumOnATwelveLayerGpt) {
  const Program model = build_gpt({.layers = 12, .width = 64, .heads = 4, .context = 64, .vocabulary = 256});
  for (const int64_t micro_batches : {1, 4}) {
    const Plan plan = planned(training_program(model, 8, micro_batches), micro_batches);
    const MemoryLayout& m = plan.memory;
    const int64_t shared = m.of(Arena::activations) + m.of(Arena::stash) + m.of(Arena::workspace);
    EXPECT_LE(static_cast<double>(shared), 0.6 * static_cast<double>(m.no_reuse_bytes));
    // The same without workspace, which all nodes share and which would improve the ratio.
    const MemoryLayout bare = memory_without_workspace(plan.program);
    EXPECT_LE(static_cast<double>(bare.of(Arena::activations) + bare.of(Arena::stash)), 0.6 * static_cast<double>(bare.no_reuse_bytes));
    RecordProperty("percent", static_cast<int>(100 * shared / m.no_reuse_bytes));
    EXPECT_EQ(first_of(faults_of(plan)), "");
  }
}

}  // namespace
}  // namespace st
