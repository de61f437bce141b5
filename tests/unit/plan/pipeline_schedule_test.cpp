#include "plan/pipeline_schedule.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "thrown_error.h"

namespace st {
namespace {

constexpr int32_t kStages = 8;

struct Named {
  const char* name;
  int32_t chunks;
};
constexpr Named kSchedules[] = {{"gpipe", 1}, {"1f1b", 1}, {"interleaved", 2}, {"interleaved", 3}, {"zb-h1", 1}, {"zb-v", 2}};

/// Chunks in flight on a stage, by the table in schedule.h.
int32_t bound_of(const Named& named, int32_t p, int32_t s, int32_t m) {
  const std::string_view name = named.name;
  if (name == "gpipe") return m;
  if (name == "1f1b") return std::min(m, p - s);
  if (name == "zb-h1") return std::min(m, p);
  if (name == "zb-v") return std::min(2 * m, 2 * p);
  const int32_t v = named.chunks, round = m % p == 0 ? p : std::min(m, 2 * p - 1);
  return std::min(m * v, (v - 1) * round + 2 * p - 1);
}

TEST(PipelineSchedule, IsProvedAndWithinItsBoundForAnyStagesAndMicroBatches) {  // T18
  for (const Named& named : kSchedules)
    for (int32_t p = 1; p <= kStages; ++p)
      for (int32_t m = 1; m <= 4 * p; ++m) {
        SCOPED_TRACE(text(named.name, ", ", named.chunks, " chunks, ", p, " stages, ", m, " micro-batches"));
        const PipelineSchedule schedule = make_schedule(named.name, p, named.chunks, m);
        check_schedule(schedule);
        for (int32_t s = 0; s < p; ++s) EXPECT_LE(in_flight(schedule, s), bound_of(named, p, s, m)) << "stage " << s;
        EXPECT_EQ(parse_schedule(print_schedule(schedule)).actions, schedule.actions);
      }
}

TEST(PipelineSchedule, TakesTheTimeOfItsClosedForm) {  // T19
  const auto expect = [](const PipelineSchedule& schedule, const StageTimes& times, double closed_form) {
    EXPECT_NEAR(makespan(schedule, times), closed_form, 1e-9 * closed_form)
        << schedule.stages << " stages, " << schedule.micro_batches << " micro-batches";
  };
  for (int32_t p = 1; p <= kStages; ++p)
    for (int32_t m = 1; m <= 4 * p; ++m)
      for (const auto& [f, b, w] : {StageTimes{1, 1, 1}, StageTimes{2, 2, 1}, StageTimes{1, 2, 1}, StageTimes{3, 2, 2}}) {
        const StageTimes times{f, b, w};
        for (const char* name : {"gpipe", "1f1b"}) expect(make_schedule(name, p, 1, m), times, (m + p - 1) * (f + b + w));
        expect(make_schedule("zb-h1", p, 1, m), times, (m + p - 1) * (f + b) + w * std::max(1, m - p + 1));
        for (const int32_t v : {2, 3})
          if (m % p == 0) expect(make_schedule("interleaved", p, v, m), times, (m + (p - 1.0) / v) * (f + b + w));
        if (f == 1 && b == 1 && m >= p) expect(make_schedule("zb-v", p, 2, m), times, 3 * m + (p - 1) / 2.0);
      }
}

TEST(PipelineSchedule, ZbVTakesTheTimeOfItsClosedFormOnManyStages) {
  for (const int32_t p : {12, 16, 32, 64})
    for (const int32_t m : {p, p + 1, 3 * p / 2, 2 * p})
      EXPECT_NEAR(makespan(make_schedule("zb-v", p, 2, m), {1, 1, 1}), 3 * m + (p - 1) / 2.0, 1e-9) << p << " stages, " << m;
}

/// Products have B = W, attention and norms have B alone.
TEST(PipelineSchedule, ZbVIsFasterThanZbH1WhereTimesDifferByUpToAHalf) {
  for (int32_t p = 2; p <= kStages; ++p)
    for (int32_t m = p; m <= 4 * p; ++m) {
      const PipelineSchedule v = make_schedule("zb-v", p, 2, m), h1 = make_schedule("zb-h1", p, 1, m);
      for (const StageTimes& times : {StageTimes{1, 1.1, 0.9}, StageTimes{1, 1.3, 0.7}, StageTimes{1, 1.5, 1}, StageTimes{1, 0.9, 1.1}})
        EXPECT_LT(makespan(v, times), makespan(h1, times)) << p << " stages, " << m << " micro-batches, B " << times.backward_input;
    }
}

/// Whether a schedule ends if backward of `from` waits until fewer than `room` of its messages wait for backward of `to`.
bool ends_with_room(const PipelineSchedule& schedule, int32_t from, int32_t to, int32_t room) {
  const auto is_input = [](Phase phase) { return phase == Phase::backward || phase == Phase::backward_input; };
  std::vector<size_t> next(schedule.actions.size());
  std::vector<std::vector<bool>> forward(static_cast<size_t>(schedule.parts()),
                                         std::vector<bool>(static_cast<size_t>(schedule.micro_batches)));
  auto input = forward;
  int32_t sent = 0, taken = 0;
  const auto may_run = [&](int32_t part, const StageAction& action) {
    const auto k = static_cast<size_t>(action.micro_batch);
    if (action.phase == Phase::forward) return part == 0 || forward[static_cast<size_t>(part) - 1][k];
    if (!is_input(action.phase)) return true;
    return (part + 1 == schedule.parts() || input[static_cast<size_t>(part) + 1][k]) && (part != from || sent - taken < room);
  };
  size_t left = 0;
  for (const auto& of_stage : schedule.actions) left += of_stage.size();
  for (bool goes_on = true; goes_on && left > 0;) {
    goes_on = false;
    for (int32_t s = 0; s < schedule.stages; ++s) {
      const auto& actions = schedule.actions[static_cast<size_t>(s)];
      size_t& at = next[static_cast<size_t>(s)];
      if (at == actions.size() || !may_run(schedule.part_of(s, actions[at].chunk), actions[at])) continue;
      const StageAction& action = actions[at++];
      const int32_t part = schedule.part_of(s, action.chunk);
      const auto k = static_cast<size_t>(action.micro_batch);
      if (action.phase == Phase::forward) forward[static_cast<size_t>(part)][k] = true;
      if (is_input(action.phase)) {
        input[static_cast<size_t>(part)][k] = true;
        sent += part == from ? 1 : 0;
        taken += part == to ? 1 : 0;
      }
      --left;
      goes_on = true;
    }
  }
  return left == 0;
}

TEST(PipelineSchedule, HasRoomForTheGradientsUnderWay) {
  int32_t most = 0, tight = 0;
  for (const Named& named : kSchedules)
    for (int32_t p = 2; p <= 5; ++p)
      for (int32_t m = 1; m <= 3 * p; ++m) {
        const PipelineSchedule schedule = make_schedule(named.name, p, named.chunks, m);
        for (int32_t from = 1; from < schedule.parts(); ++from)
          for (const int32_t to : {from - 1, from / 2}) {
            const StageLink link{.carries = StageLink::Carries::gradients, .from_part = from, .to_part = to};
            const int32_t room = messages_under_way(schedule, std::span(&link, 1))[0];
            EXPECT_TRUE(ends_with_room(schedule, from, to, room)) << named.name << ", " << p << " stages, " << m << " micro-batches";
            tight += room > 1 && !ends_with_room(schedule, from, to, room - 1) ? 1 : 0;
            most = std::max(most, room);
          }
      }
  EXPECT_GT(most, 1);
  EXPECT_GT(tight, 0) << "less room would end all of them, too";
}

TEST(PipelineSchedule, HasTheBubbleOfItsClosedForm) {
  for (const int32_t p : {1, 2, 4})
    for (const int32_t m : {1, 4, 8}) {
      const double whole = m + p - 1;
      for (const char* name : {"gpipe", "1f1b"}) EXPECT_NEAR(bubble(make_schedule(name, p, 1, m), {1, 2, 1}), (p - 1) / whole, 1e-12);
    }
}

TEST(PipelineSchedule, OfAHostIsReadFromPyTorchsTables) {
  const PipelineSchedule schedule = parse_schedule("0F0, 0F1,,,0B0,0B1\n,1F0,1I0,1W0,1F1,1B1\n");
  EXPECT_EQ(schedule.stages, 2);
  EXPECT_EQ(schedule.chunks, 1);
  EXPECT_EQ(schedule.micro_batches, 2);
  EXPECT_EQ(print_schedule(schedule), "0F0,0F1,0B0,0B1\n1F0,1I0,1W0,1F1,1B1\n");
  EXPECT_EQ(parse_schedule("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n").placement, PipelineSchedule::Placement::v);
  EXPECT_EQ(parse_schedule("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n").placement, PipelineSchedule::Placement::loop);
}

TEST(PipelineSchedule, ThatIsWrongIsRefusedWithItsCell) {
  const auto expect = [](const char* table, const std::vector<std::string>& words) {
    EXPECT_TRUE(is_error(error_of([&] { parse_schedule(table); }), Code::invalid_argument, words)) << table;
  };
  expect("", {"needs a line"});
  expect("0F0,0X0", {"line 1, cell \"0X0\"", "as in 0F0"});
  expect("0F0,0B-1", {"cell \"0B-1\""});
  expect("0F0,0B0\n2F0,2B0", {"2 lines have 3 parts"});
  expect("0F0,1F0,0B0\n1B0", {"line 1: part 1 belongs to line 2"});
  expect("0F0,0F1,0B0", {"stage 0", "1 backward", "of 2 micro-batches"});
  expect("0F1,0F0,0B0,0B1", {"stage 0, 0F1", "next forward is of micro-batch 0"});
  expect("0F0,0F1,0B1,0B0", {"0B1", "next backward is of micro-batch 0"});
  expect("0B0,0F0", {"0B0", "its forward comes later"});
  expect("0F0,0W0,0I0", {"0W0", "its backward comes later"});
  expect("0F0,0F1,0I0,0I1,0W1,0W0", {"0W1", "next gradient of weights is of micro-batch 0"});
  // Stage 0 wants the backward of micro-batch 0 before it makes the second forward, which stage 1 wants before that backward.
  expect("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1", {"never ends", "stage 0 waits in 0B0 for 1B0 of stage 1", "stage 1 waits in 1F1 for 0F1"});
}

TEST(PipelineSchedule, IsRefusedByNameAndNumbers) {
  const auto expect = [](const char* name, int32_t stages, int32_t chunks, int32_t micro_batches, const std::vector<std::string>& words) {
    EXPECT_TRUE(is_error(error_of([&] { make_schedule(name, stages, chunks, micro_batches); }), Code::invalid_argument, words)) << name;
  };
  expect("2f2b", 2, 1, 2, {"\"2f2b\"", "gpipe, 1f1b, interleaved, zb-h1 and zb-v"});
  expect("1f1b", 0, 1, 2, {"1 or more stages"});
  expect("1f1b", 2, 1, 0, {"got 2 and 0"});
  expect("1f1b", 2, 2, 2, {"1f1b has 1 chunk"});
  expect("interleaved", 2, 1, 2, {"2 or more chunks", "with 1 it is 1f1b"});
  expect("zb-v", 2, 3, 2, {"zb-v has 2 chunk"});
  expect("interleaved", 64, 1024, 1 << 20, {"64 stages x 1024 chunks x 1048576 micro-batches", "16777216"});
}

TEST(PipelineSchedule, CountsAMicroBatchAsInFlightUntilItsWeightGradients) {
  EXPECT_EQ(in_flight(parse_schedule("0F0,0F1,0I0,0I1,0W0,0F2,0W1,0B2"), 0), 2);
  EXPECT_EQ(in_flight(parse_schedule("0F0,0F1,0I0,0I1,0F2,0W0,0W1,0B2"), 0), 3);
}

}  // namespace
}  // namespace st
