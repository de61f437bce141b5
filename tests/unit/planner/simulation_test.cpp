#include "planner/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "plan/pipeline_schedule.h"
#include "planner/predicted_timeline.h"
#include "refusal.h"

namespace st {
namespace {

using Kind = TraceEvent::Kind;

/// The actions of a schedule as traces of its stages, one link for each pair of neighbouring parts and direction; messages take no time.
struct ScheduleTraces {
  std::vector<StageLink> links;
  std::vector<RankTrace> traces;

  ScheduleTraces(const PipelineSchedule& schedule, const StageTimes& times) {
    std::map<std::pair<int32_t, int32_t>, int32_t> link_of;  // from part, to part
    const auto link = [&](int32_t from, int32_t to) {
      const auto [found, is_new] = link_of.try_emplace({from, to}, static_cast<int32_t>(links.size()));
      if (is_new) links.push_back({.from = schedule.stage_of(from), .to = schedule.stage_of(to)});
      return found->second;
    };
    const bool splits = splits_backward(schedule);
    for (int32_t stage = 0; stage < schedule.stages; ++stage) {
      RankTrace trace;
      for (const StageAction& action : schedule.actions[static_cast<size_t>(stage)]) {
        const int32_t part = schedule.part_of(stage, action.chunk), last = schedule.parts() - 1;
        const bool is_forward = action.phase == Phase::forward,
                   gives_input = action.phase == Phase::backward || action.phase == Phase::backward_input;
        const auto event = [&](Kind kind, int32_t of_link) { trace.events.push_back({.kind = kind, .link = of_link}); };
        if (is_forward && part > 0) event(Kind::receive, link(part - 1, part));
        if (gives_input && part < last) event(Kind::receive, link(part + 1, part));
        const double b = splits ? times.backward_input : times.backward_input + times.backward_weight;
        const double seconds = is_forward ? times.forward : gives_input ? b : times.backward_weight;
        trace.events.push_back({.kind = Kind::compute, .seconds = seconds / schedule.chunks});
        if (is_forward && part < last) event(Kind::send, link(part, part + 1));
        if (gives_input && part > 0) event(Kind::send, link(part, part - 1));
      }
      traces.push_back(std::move(trace));
    }
  }
};

SimulatedStep simulated(const ScheduleTraces& of, int32_t stages, int32_t data = 1) {
  return simulate({.mesh = {.data = data, .tensor = 1, .stage = stages}, .links = of.links, .trace = [&](int32_t rank) -> const RankTrace& {
                     return of.traces[static_cast<size_t>(rank / data)];
                   }});
}

TEST(Simulation, TakesTheTimeOfEachScheduleOnAllDataRanks) {  // T19; the closed forms are those of pipeline_schedule_test.cpp
  for (const auto& [name, chunks] : {std::pair{"gpipe", 1}, {"1f1b", 1}, {"interleaved", 2}, {"zb-h1", 1}, {"zb-v", 2}})
    for (const int32_t p : {1, 2, 3, 4, 8})
      for (const int32_t m : {p, 2 * p, 3 * p}) {
        SCOPED_TRACE(text(name, ", ", p, " stages, ", m, " micro-batches"));
        const PipelineSchedule schedule = make_schedule(name, p, chunks, m);
        for (const StageTimes& times : {StageTimes{1, 1, 1}, StageTimes{3, 2, 2}}) {
          const SimulatedStep step = simulated(ScheduleTraces(schedule, times), p, 2);
          EXPECT_DOUBLE_EQ(step.seconds(), makespan(schedule, times));
          EXPECT_NEAR(step.idle(), bubble(schedule, times), 1e-12);
        }
        if (std::string_view(name) != "zb-v") continue;
        const double seconds = simulated(ScheduleTraces(schedule, {1, 1, 1}), p).seconds();
        EXPECT_DOUBLE_EQ(seconds, 3 * m + (p - 1) / 2.0);
      }
}

RankTrace trace(std::initializer_list<TraceEvent> events) {
  RankTrace made;
  made.events = events;
  return made;
}

TEST(Simulation, PostedCollectivesRunInOrderBesideComputing) {
  const RankTrace of_rank = trace({{.kind = Kind::compute, .seconds = 1},
                                   {.kind = Kind::post, .number = 0, .seconds = 5},
                                   {.kind = Kind::compute, .seconds = 2},
                                   {.kind = Kind::post, .number = 1, .seconds = 1},
                                   {.kind = Kind::compute, .seconds = 1},
                                   {.kind = Kind::await, .number = 0},    // at 6; rank 1 came a second later
                                   {.kind = Kind::await, .number = 1}});  // after the first one
  Simulation run{.mesh = {.data = 2}, .links = {}, .trace = [&](int32_t) -> const RankTrace& { return of_rank; }};
  EXPECT_EQ(simulate(run).seconds(), 7);
  run.pace = [](int32_t rank) { return rank == 1 ? RankPace{.computing = 2} : RankPace{}; };
  const SimulatedStep step = simulate(run);
  EXPECT_EQ(step.seconds(), 8);  // rank 1 posts at 2 and at 6; the collectives end at 7 and at 8, when it ends computing too
  EXPECT_EQ(step.ranks[0].waited, step.seconds() - step.ranks[0].computed);
}

TEST(Simulation, ASlowLinkHoldsUpItsGroupAlone) {
  const RankTrace of_rank =
      trace({{.kind = Kind::compute, .seconds = 1}, {.kind = Kind::exchange, .axis = MeshAxis::tensor, .seconds = 2}});
  Simulation run{.mesh = {.data = 2, .tensor = 2}, .links = {}, .trace = [&](int32_t) -> const RankTrace& { return of_rank; }};
  run.pace = [](int32_t rank) { return rank == 3 ? RankPace{.exchange = 4} : RankPace{}; };
  const SimulatedStep step = simulate(run);
  for (const int32_t rank : {0, 1}) EXPECT_EQ(step.ranks[static_cast<size_t>(rank)].ended, 3);
  for (const int32_t rank : {2, 3}) EXPECT_EQ(step.ranks[static_cast<size_t>(rank)].ended, 9);
}

TEST(Simulation, RanksThatWaitForEachOtherAreNamed) {
  const RankTrace waits = trace({{.kind = Kind::receive, .link = 0}}), meets = trace({{.kind = Kind::exchange, .number = 0}});
  const StageLink link{.from = 1, .to = 0};
  EXPECT_TRUE(refuses(Code::internal, {"rank 0 waits for a message on link 0"}, [&] {
    simulate({.mesh = {.stage = 2}, .links = {&link, 1}, .trace = [&](int32_t) -> const RankTrace& { return waits; }});
  }));
  EXPECT_TRUE(refuses(Code::internal, {"rank 1 waits for a collective"}, [&] {
    const RankTrace none;
    simulate({.mesh = {.data = 2}, .links = {}, .trace = [&](int32_t rank) -> const RankTrace& { return rank == 0 ? none : meets; }});
  }));
}

TEST(Simulation, RanksOfAGroupThatMakeDifferentCollectivesAreNamed) {
  for (const MeshAxis axis : {MeshAxis::data, MeshAxis::tensor})
    for (const bool is_posted : {false, true}) {
      if (is_posted && axis != MeshAxis::data) continue;
      SCOPED_TRACE(text(name_of(axis), is_posted ? ", posted" : ""));
      // Two ranks list the same collectives in another order, as ranks of two stages do: an index in the list means nothing to another
      // rank.
      std::array<RankTrace, 3> of_rank;
      for (size_t rank = 0; rank < of_rank.size(); ++rank) {
        of_rank[rank].collectives = {{"all_gather", "weight", DType::bf16, 96}, {"all_gather", "bias", DType::bf16, 24}};
        if (rank == 1) std::ranges::reverse(of_rank[rank].collectives);
        const int32_t weight = rank == 1 ? 1 : 0;
        for (int32_t i = 0; i < 2; ++i)
          of_rank[rank].events.push_back(
              {.kind = is_posted ? Kind::post : Kind::exchange, .axis = axis, .number = i, .collective = i == 0 ? weight : 1 - weight});
      }
      const Mesh mesh = axis == MeshAxis::data ? Mesh{.data = 3} : Mesh{.data = 1, .tensor = 3};
      const Simulation run{
          .mesh = mesh, .links = {}, .trace = [&](int32_t rank) -> const RankTrace& { return of_rank[static_cast<size_t>(rank)]; }};
      EXPECT_EQ(simulate(run).seconds(), 0);
      of_rank[2].collectives[1].label = "scale";
      EXPECT_TRUE(refuses(Code::internal, {"rank 0 makes all_gather of bias", "rank 2 makes all_gather of scale"}, [&] { simulate(run); }));
      of_rank[2].collectives[1] = {"reduce_scatter", "bias", DType::bf16, 24};
      EXPECT_TRUE(refuses(Code::internal, {"rank 2 makes reduce_scatter of bias"}, [&] { simulate(run); }));
      of_rank[2].collectives[1] = {"all_gather", "bias", DType::bf16, 26};
      EXPECT_TRUE(refuses(Code::internal,
                          {"rank 0 makes all_gather of bias, 24 bytes of bf16", "rank 2 makes all_gather of bias, 26 bytes of bf16"},
                          [&] { simulate(run); }));
      of_rank[2].collectives[1] = {"all_gather", "bias", DType::f16, 24};
      EXPECT_TRUE(refuses(Code::internal, {"rank 2 makes all_gather of bias, 24 bytes of f16"}, [&] { simulate(run); }));
    }
}

TEST(PredictedTimeline, HasTheFormOfAMeasuredOne) {
  RankTrace of_rank = trace({{.kind = Kind::compute, .section = 0, .micro_batch = 0, .seconds = 1},
                             {.kind = Kind::exchange, .axis = MeshAxis::tensor, .collective = 0, .seconds = 2},
                             {.kind = Kind::compute, .section = 0, .micro_batch = 0, .seconds = 1},
                             {.kind = Kind::post, .number = 0, .collective = 1, .seconds = 3},
                             {.kind = Kind::compute, .section = 1, .micro_batch = 1, .seconds = 1},
                             {.kind = Kind::compute, .section = 2, .micro_batch = 0, .seconds = 1},
                             {.kind = Kind::await, .number = 0}});
  of_rank.phases = {Phase::forward, Phase::backward, Phase::update};
  of_rank.chunks = {0, 0, 0};
  of_rank.collectives = {{"all_gather", "rows"}, {"reduce_scatter", std::string(60, 'g')}};
  const PredictedTimeline timeline({.mesh = {.data = 2}, .links = {}, .trace = [&](int32_t) -> const RankTrace& { return of_rank; }});
  EXPECT_EQ(timeline.step().seconds(), 7);
  const std::string json = timeline.json();
  const std::string second = json.substr(json.find(R"({"rank":1)"));
  // 4 s computing; the exposed 2 + 1 s of 2 + 3 s exchange. Rank 1's round 1 is micro-batch 3 of two ranks.
  for (const std::string& expected :
       {std::string(R"("milliseconds":7000,"computing":4000,"exchange":5000,"hidden":0.4,"began_us":0,"ended_us":7000000)"),
        std::string(R"("computed_us":[[0,1000000],[3000000,6000000]])"),
        std::string(R"({"collective":"all_gather","label":"rows","began_us":1000000,"ended_us":3000000})"),
        R"({"collective":"reduce_scatter","label":")" + std::string(47, 'g') + R"(","began_us":4000000,"ended_us":7000000})",
        std::string(
            R"({"phase":"forward","chunk":0,"micro_batch":1,"began_us":0,"ended_us":4000000,"waited_us":0,"exchanged_us":2000000})"),
        std::string(R"({"phase":"backward","chunk":0,"micro_batch":3,"began_us":4000000,"ended_us":5000000,)")})
    EXPECT_NE(second.find(expected), std::string::npos) << expected << " in " << second;
  EXPECT_EQ(json.find("update"), std::string::npos);
}

TEST(PredictedTimeline, HasOneRankOfEachStageOfALargeRun) {
  const RankTrace of_rank = trace({{.kind = Kind::compute, .seconds = 1}});
  const PredictedTimeline timeline(
      {.mesh = {.data = 32, .tensor = 1, .stage = 2}, .links = {}, .trace = [&](int32_t) -> const RankTrace& { return of_rank; }});
  const std::string json = timeline.json();
  EXPECT_NE(json.find(R"({"rank":0,)"), std::string::npos);
  EXPECT_NE(json.find(R"({"rank":32,)"), std::string::npos);
  EXPECT_EQ(json.find(R"({"rank":1,)"), std::string::npos);
}

}  // namespace
}  // namespace st
