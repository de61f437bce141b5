#include "report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/line_chart.h"
#include "report/rank_lanes.h"
#include "report/stage_lanes.h"

namespace st {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

RunSummary run_of(int64_t steps) {
  RunSummary run;
  run.title = "gpt, 4 layers of width 128";
  for (int64_t i = 1; i <= steps; ++i) {
    StepReport step;
    step.step = i;
    step.loss = 2 + 4 / std::sqrt(static_cast<double>(i)) + 0.1 * std::sin(static_cast<double>(i * i));
    step.lr = 1e-3;
    step.grad_norm = 1 + 0.3 * std::cos(static_cast<double>(3 * i));
    step.tokens = i * 768;
    step.tokens_per_second = 9000 + 100 * std::sin(static_cast<double>(7 * i));
    run.steps.push_back(step);
    if (i % 100 == 0) run.validation.push_back({.step = i, .loss = 2.1 + 4 / std::sqrt(static_cast<double>(i))});
  }
  run.memory = {{"parameters", 3 << 20}, {"activations", 20 << 20}};
  run.facts = {{"Machine", {{"threads", "2"}}}};
  return run;
}

TEST(Report, StandsAlone) {
  const std::string page = html_report(run_of(300));
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  for (const std::string outside : {"http:", "https:", "//cdn", " src=", "<link", "@import", "url(h"})
    EXPECT_FALSE(contains(page, outside)) << outside;
  EXPECT_EQ(count(page, "<svg "), count(page, "</svg>"));
  EXPECT_EQ(count(page, "<div"), count(page, "</div>"));
  EXPECT_EQ(count(page, "<figure"), count(page, "</figure>"));
  EXPECT_EQ(count(page, "<section"), count(page, "</section>"));
  for (const std::string title : {"Loss", "Learning rate", "Gradient norm", "Speed", "Memory", "Machine"})
    EXPECT_TRUE(contains(page, "<h2>" + title + "</h2>")) << title;
}

TEST(Report, DrawsEachMetricAndSaysWhenTheScheduleEnded) {
  RunSummary run = run_of(300);
  for (ValidationPoint& point : run.validation) point.metrics = {{"metric.accuracy", 0.5}, {"metric.<b>", 1}};
  EXPECT_FALSE(contains(html_report(run), "schedule ended"));
  run.step_past_schedule = 201;
  const std::string page = html_report(run);
  EXPECT_TRUE(contains(page, "<h2>metric.accuracy</h2>"));
  EXPECT_TRUE(contains(page, "<h2>metric.&lt;b&gt;</h2>"));
  EXPECT_TRUE(contains(page, "its schedule ended before step 201"));
}

TEST(Report, IsSmallForALongRun) {
  const std::string ten_thousand = html_report(run_of(10000));
  EXPECT_LT(ten_thousand.size(), 100'000U);
  // Longer runs are thinned to the same number of points.
  EXPECT_LT(html_report(run_of(100000)).size(), ten_thousand.size() + 10'000);
}

TEST(Report, EscapesAllText) {
  RunSummary run = run_of(3);
  const std::string evil = "<script>\"&'";
  run.title = run.subtitle = run.prompt = run.sample = run.state = evil;
  run.facts = {{evil, {{evil, evil}}}};
  run.memory = {{evil, 5}};
  const std::string page = html_report(run);
  EXPECT_FALSE(contains(page, evil));
  EXPECT_EQ(count(page, "<script>"), 1U);  // the page's own
  // Title twice (head and heading), subtitle, prompt, sample, state, group, fact's name and value, memory.
  EXPECT_EQ(count(page, "&lt;script&gt;&quot;&amp;&#39;"), 10U);
}

TEST(Report, ComparesWithTheBigramTable) {
  RunSummary run = run_of(200);
  EXPECT_FALSE(contains(html_report(run), "bigram"));
  run.validation.back().loss = 2;
  run.bigram_loss = 2.5;
  EXPECT_TRUE(contains(html_report(run), "<b>0.500</b> nats per token below"));
  run.bigram_loss = 1.75;
  EXPECT_TRUE(contains(html_report(run), "<b>0.250</b> nats per token above"));
}

TEST(Report, ShowsARunWhateverHappenedToIt) {
  EXPECT_TRUE(contains(html_report(RunSummary{}), "No step was taken"));
  EXPECT_TRUE(contains(html_report(run_of(1)), "lone"));

  RunSummary run = run_of(50);
  run.steps[10].skipped = true;
  for (StepReport& step : run.steps) step.loss = step.grad_norm = std::numeric_limits<double>::quiet_NaN();
  const std::string page = html_report(run);
  EXPECT_TRUE(contains(page, "1 step skipped"));
  EXPECT_TRUE(contains(page, "not finite"));
  EXPECT_FALSE(contains(page, ">nan<"));
  EXPECT_FALSE(contains(page, "\"nan"));
  EXPECT_FALSE(contains(page, "from step"));
  run.steps.erase(run.steps.begin(), run.steps.begin() + 5);  // resumed without its log
  EXPECT_TRUE(contains(html_report(run), "from step 6 on, 1 step skipped"));
}

// --- ranks

StepTimes step_of(int64_t step, std::vector<RankTimes> ranks) { return {step, std::move(ranks)}; }

TEST(Timeline, TellsTheStragglerAndWhatWasHidden) {
  const StepTimes step = step_of(1, {{.seconds = 10, .exchange = 8, .exposed = 6}, {.seconds = 10, .exchange = 4, .exposed = 2}});
  EXPECT_EQ(step.ranks[0].computing(), 4);
  EXPECT_EQ(step.ranks[0].hidden(), 0.25);
  EXPECT_EQ(step.ranks[1].computing(), 8);
  EXPECT_EQ(step.ranks[1].hidden(), 0.5);
  EXPECT_EQ(step.slowest(), 1U);
  EXPECT_DOUBLE_EQ(step.straggler(), 8.0 / 6);
  EXPECT_TRUE(std::isnan(step_of(1, {{}, {}}).straggler()));
  EXPECT_EQ((RankTimes{.seconds = 1, .exchange = 0, .exposed = 0}).hidden(), 0);
}

TEST(Timeline, KeepsTheLastStepsAndForgetsWhatIsMadeAgain) {
  Timeline timeline(1);
  for (int64_t step = 1; step <= 20; ++step) timeline.add(step)[0].seconds = static_cast<double>(step);
  ASSERT_EQ(timeline.steps().size(), 16U);
  EXPECT_EQ(timeline.steps().front().step, 5);
  EXPECT_EQ(timeline.steps().front().ranks[0].seconds, 5);
  timeline.add(18)[0].seconds = 0.5;  // resumed after step 17
  ASSERT_EQ(timeline.steps().size(), 14U);
  EXPECT_EQ(timeline.steps().back().step, 18);
  EXPECT_EQ(timeline.steps().back().ranks[0].seconds, 0.5);
  EXPECT_EQ(timeline.steps()[12].step, 17);
}

TEST(Report, ShowsALaneOfEveryRank) {
  RunSummary run = run_of(12);
  EXPECT_FALSE(contains(html_report(run), "<h2>Ranks</h2>"));
  // Rank 1 computes for 8 seconds, rank 0 for half of that; reversed in the oldest two steps, which are not shown.
  for (int64_t step = 3; step <= 12; ++step) {
    run.timeline.push_back(step_of(step, {{.seconds = 10, .exchange = 8, .exposed = 6}, {.seconds = 9, .exchange = 4, .exposed = 1}}));
    if (step < 5) std::swap(run.timeline.back().ranks[0], run.timeline.back().ranks[1]);
  }
  const std::string page = html_report(run);
  EXPECT_TRUE(contains(page, "Steps 5 to 12; straggler score <b>1.33</b>: rank 1 computed 33 % longer than the mean of all"));
  EXPECT_EQ(count(page, "<title>rank 0, step "), 8U);
  EXPECT_EQ(count(page, "<title>rank 1, step 12: computing 8000 ms, collectives 4000 ms, 75 % of it overlapped</title>"), 1U);
  // (1080 - 66 - 8 gaps of 4) / 8 pixels per step: 12.275 per second.
  EXPECT_TRUE(contains(page, "<rect class=\"computing\" x=\"66\" y=\"24\" width=\"98.2\""));
  EXPECT_TRUE(contains(page, "<rect class=\"hatch\" x=\"127.4\" y=\"24\" width=\"36.8\""));
  EXPECT_TRUE(contains(page, "<rect class=\"exposed\" x=\"164.2\" y=\"24\" width=\"12.3\""));
  EXPECT_EQ(count(page, "<svg "), count(page, "</svg>"));
}

TEST(Report, ShowsAsManyLanesAsCanBeTold) {
  RunSummary run = run_of(3);
  run.timeline.push_back(step_of(3, std::vector<RankTimes>(kMostLanes + 8, {.seconds = 1, .exchange = 0.5, .exposed = 0.5})));
  const std::string page = html_report(run);
  EXPECT_EQ(count(page, "<title>rank "), kMostLanes);
  EXPECT_TRUE(contains(page, "the first 32 of 40 ranks are shown"));
}

// --- stages

/// In each lane: forward of micro-batches 0 to `micro_batches` - 1, then both halves of their backward, a second each.
PipelineTimes stages_of(int32_t stages, int32_t micro_batches) {
  PipelineTimes times{.step = 3, .lanes = {}};
  for (int32_t stage = 0; stage < stages; ++stage) {
    StageLane& lane = times.lanes.emplace_back(StageLane{stage, stage, 0, 0, {}});
    for (const Phase phase : {Phase::forward, Phase::backward_input, Phase::backward_weight})
      for (int32_t k = 0; k < micro_batches; ++k) {
        const auto began = static_cast<double>(lane.runs.size());
        lane.runs.push_back({{phase, k % 2, k}, began, began + 1, 0});
      }
  }
  return times;
}

TEST(Report, ShowsTheActionsOfEachStage) {
  RunSummary run = run_of(3);
  EXPECT_FALSE(contains(html_report(run), "<h2>Pipeline</h2>"));
  run.pipeline = stages_of(2, 2);
  run.pipeline.lanes[1].runs[0].waited = 0.6;  // of 6 seconds
  run.schedule = "zb-<h1>";
  run.schedule_bubble = 0.25;
  const std::string page = html_report(run);
  EXPECT_TRUE(contains(page, "Step 3 by zb-&lt;h1&gt;; bubble <b>5.0 %</b>"));
  EXPECT_TRUE(contains(page, "take the same time, <b>25.0 %</b></p>"));
  EXPECT_TRUE(contains(page, "<title>rank 1, stage 1: 6 actions, bubble 10 %</title>"));
  // 1080 - 110 - 56 pixels for 6 seconds.
  EXPECT_TRUE(contains(page, "<path class=\"forward\" d=\"M110 0h152.3v22h-152.3zM262.3 0h152.3v22h-152.3z\"/>"));
  EXPECT_TRUE(contains(page, "<path class=\"forward\" d=\"M201.4 28h60.9v22h-60.9zM262.3 28h152.3v22h-152.3z\"/>"));
  EXPECT_EQ(count(page, "<path class=\"backward\""), 2U);
  EXPECT_EQ(count(page, "<path class=\"weight\""), 2U);
  EXPECT_TRUE(contains(page, "<g class=\"number\"><text x=\"186.2\" y=\"16\">0</text>"));
  EXPECT_TRUE(contains(page, "<g class=\"number later\"><text x=\"338.5\" y=\"16\">1</text>"));
  EXPECT_EQ(count(page, "gradients of weights"), 1U);
  EXPECT_EQ(count(page, "<svg "), count(page, "</svg>"));
}

TEST(Report, IsSmallForManyActions) {
  RunSummary run = run_of(10000);
  run.pipeline = stages_of(20, 40);
  run.schedule = "1f1b";
  const std::string page = html_report(run);
  EXPECT_LT(page.size(), 100'000U);
  EXPECT_EQ(drawn_lanes(run.pipeline), 13U);  // of 120 actions each
  EXPECT_TRUE(contains(page, "the first 13 of 20 ranks are shown"));
  run.pipeline = stages_of(2, 3000);
  EXPECT_EQ(drawn_lanes(run.pipeline), 1U);  // one is always shown
}

TEST(LineChart, ThinningKeepsEveryPeak) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 10000; ++i) points.push_back({static_cast<double>(i), i == 1234 ? 50.0 : i == 9876 ? -50.0 : std::sin(i)});
  const auto thinned = thin(points, 100);
  EXPECT_LE(thinned.size(), 200U);
  const auto has = [&](double x, double y) {
    return std::any_of(thinned.begin(), thinned.end(), [&](const ChartPoint& p) { return p.x == x && p.y == y; });
  };
  EXPECT_TRUE(has(1234, 50));
  EXPECT_TRUE(has(9876, -50));
  EXPECT_TRUE(std::is_sorted(thinned.begin(), thinned.end(), [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; }));
  EXPECT_EQ(thin({{1, 2}, {2, 3}}, 1).size(), 2U);  // short series are unchanged
}

TEST(LineChart, SmoothingNeitherLagsNorBends) {
  std::vector<ChartPoint> line, noisy;
  for (int i = 0; i < 100; ++i) {
    line.push_back({static_cast<double>(i), 7 - 0.5 * i});
    noisy.push_back({static_cast<double>(i), i % 2 == 0 ? 1.0 : -1.0});
  }
  for (const ChartPoint& point : smooth(line, 8)) EXPECT_NEAR(point.y, 7 - 0.5 * point.x, 1e-9);
  // Away from the ends the mean of 17 alternating values is 1/17.
  const auto smoothed = smooth(noisy, 8);
  for (size_t i = 8; i < 92; ++i) EXPECT_NEAR(std::abs(smoothed[i].y), 1.0 / 17, 1e-9);
}

TEST(LineChart, BreaksWhereAValueIsNotFinite) {
  LineChart chart;
  chart.series = {{"a", "loss", {{1, 1}, {2, 2}, {3, std::nan("")}, {4, 1}, {5, 2}}}};
  const std::string drawn = svg(chart);
  const size_t begin = drawn.find(" d=\"") + 4;
  const std::string d = drawn.substr(begin, drawn.find('"', begin) - begin);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'M'), 2);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'L'), 2);
}

TEST(LineChart, WritesShortNumbers) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.0003), "0.0003");
  EXPECT_EQ(short_number(1250), "1,250");
  EXPECT_EQ(short_number(-1250), "-1,250");
  EXPECT_EQ(short_number(99999), "99,999");
  EXPECT_EQ(short_number(124439808), "124.4M");
  EXPECT_EQ(short_number(843776), "843.8k");
  EXPECT_EQ(short_number(0.1 + 0.2), "0.3");
  EXPECT_EQ(short_number(std::nan("")), "n/a");
}

}  // namespace
}  // namespace st
