#include "planner/plan_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/plain_locale.h"
#include "base/text.h"
#include "report/line_chart.h"
#include "report/report_page.h"
#include "report/stage_lanes.h"

namespace st {
namespace {

constexpr double kWidth = 1080, kHeight = 260, kLeft = 64, kFoot = 24;
/// From the bottom of the drawing: what is always there, then what comes and goes.
constexpr std::array<Arena, 9> kOrder = {Arena::parameters, Arena::optimizer, Arena::gradients,   Arena::packed,   Arena::control,
                                         Arena::buckets,    Arena::stash,     Arena::activations, Arena::workspace};
constexpr std::array<const char*, 9> kColors = {"#2563eb", "#7c4ddb", "#0d9468", "#6ea0ff", "#98a1b2",
                                                "#dd6b10", "#f2b705", "#d43a3a", "#5d6575"};

double tenths(double value) { return std::round(value * 10) / 10; }

std::string fixed(double value, int digits) {
  const PlainLocale locale;
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%.*f", digits, value);
  return out.data();
}

std::string tile(const std::string& value, const std::string& name) {
  return text("<div class=\"tile\"><b>", value, "</b><span>", name, "</span></div>\n");
}

std::string tiles(const PlanPage& page) {
  const Recipe& recipe = page.run.recipe;
  const double seconds = page.shares.all(), tokens = page.run.tokens_per_step();
  const int64_t total = page.of_rank.numbers.memory.device_total(), most = page.run.device_memory_of_rank();
  std::string out = "<section class=\"tiles\">\n";
  const auto verdict = [&](int64_t bytes) { return text_of_bytes(most) + (bytes <= most ? ": fits" : ": does not fit"); };
  out += tile(text_of_bytes(total), "of " + verdict(total));
  if (page.stages.size() > 1) {
    const PlannedStage& full = fullest(page.stages);
    out += tile(text_of_bytes(full.memory.device_total()),
                text("on stage ", full.stage, ", the fullest, of ", verdict(full.memory.device_total())));
  }
  out += tile(seconds < 1 ? fixed(seconds * 1e3, 1) + " ms" : fixed(seconds, 2) + " s",
              page.run.machine.is_measured ? "a step, from measured rates" : "a step, estimated from data sheets");
  if (seconds > 0) out += tile(short_number(std::round(tokens / seconds)), "tokens per second, all ranks");
  out += tile(fixed(seconds > 0 ? 100 * page.shares.bubble / seconds : 0, 1) + " %", "bubble");
  out += tile(short_number(static_cast<double>(recipe.ranks)), "ranks");
  return out + "</section>\n";
}

std::string card(const std::string& title, const std::string& note, const std::string& body) {
  return text("<figure class=\"card lanes\"><figcaption><h2>", title, "</h2><p class=\"note\">", note,
              "</p></figcaption><div class=\"wide\">", body, "</div></figure>\n");
}

/// Stacked areas, one for each arena.
std::string memory_figure(const PlanPage& page) {
  const auto& moments = page.memory;
  if (moments.empty()) return "";
  const double all = std::max(moments.back().ended, 1e-12);
  int64_t most = 1;
  for (const MemoryMoment& of : moments) {
    int64_t sum = 0;
    for (const int64_t bytes : of.bytes) sum += bytes;
    most = std::max(most, sum);
  }
  const auto x = [&](double seconds) { return tenths(kLeft + (kWidth - kLeft) * seconds / all); };
  const auto y = [&](int64_t bytes) { return tenths((kHeight - kFoot) * (1 - static_cast<double>(bytes) / static_cast<double>(most))); };
  std::string out = text("<svg viewBox=\"0 0 ", kWidth, ' ', kHeight, "\" role=\"img\">\n"), legend;
  std::vector<int64_t> below(moments.size(), 0);
  for (size_t i = 0; i < kOrder.size(); ++i) {
    const auto arena = static_cast<size_t>(kOrder[i]);
    int64_t peak = 0;
    std::string upper, lower;
    for (size_t m = 0; m < moments.size(); ++m) {
      const int64_t top = below[m] + moments[m].bytes[arena];
      peak = std::max(peak, moments[m].bytes[arena]);
      upper += text(upper.empty() ? "M" : "L", x(moments[m].began), ' ', y(top), 'H', x(moments[m].ended));
    }
    if (peak == 0) continue;
    for (size_t m = moments.size(); m-- > 0;) {
      lower += text('L', x(moments[m].ended), ' ', y(below[m]), 'H', x(moments[m].began));
      below[m] += moments[m].bytes[arena];
    }
    out += text("<path fill=\"", kColors[i], "\" d=\"", upper, lower, "z\"><title>", name_of(kOrder[i]), ": up to ", text_of_bytes(peak),
                "</title></path>\n");
    legend += text("<span><i style=\"color:", kColors[i], "\"></i>", name_of(kOrder[i]), ' ', text_of_bytes(peak), "</span>");
  }
  out += text("<text class=\"tick\" x=\"0\" y=\"12\">", text_of_bytes(most), "</text><text class=\"tick\" x=\"", kLeft, "\" y=\"",
              kHeight - 6, "\">0</text><text class=\"tick\" text-anchor=\"end\" x=\"", kWidth, "\" y=\"", kHeight - 6, "\">",
              fixed(all * 1e3, 1), " ms of computing</text></svg>\n");
  return card("Memory over a step", "of this rank, by kind; the height of the page is the most that is alive at once",
              text("<div class=\"legend\">", legend, "</div>", out));
}

StageAction action_of(const RankClass& of, const SimulatedSpan& span) {
  return {of.trace.phases[static_cast<size_t>(span.section)], of.trace.chunks[static_cast<size_t>(span.section)], span.micro_batch};
}

/// The simulated actions in the form of measured ones (report/pipeline_times.h).
PipelineTimes lanes_of(const PlanPage& page) {
  std::map<int32_t, StageLane> lanes;
  const Mesh mesh = page.run.mesh();
  for (const SimulatedSpan& span : page.spans) {
    if (span.kind != TraceEvent::Kind::compute || span.section < 0) continue;
    const MeshPosition at = position_of(mesh, span.rank);
    StageLane& lane = lanes.try_emplace(span.rank, StageLane{span.rank, at.stage, at.data, at.tensor, {}}).first->second;
    const auto of = std::ranges::find_if(page.classes, [&](const RankClass& each) { return each.at.stage == at.stage; });
    if (of == page.classes.end()) continue;
    const StageAction action = action_of(*of, span);
    if (action.phase == Phase::update) continue;
    if (!lane.runs.empty() && lane.runs.back().action == action) {
      lane.runs.back().ended = span.ended;
    } else {
      lane.runs.push_back({.action = action, .began = span.began, .ended = span.ended});
    }
  }
  PipelineTimes times;
  for (auto& [rank, lane] : lanes) times.lanes.push_back(std::move(lane));
  return times;
}

std::string timeline_figure(const PlanPage& page) {
  if (page.run.recipe.stages == 1) return "";
  const PipelineTimes times = lanes_of(page);
  if (times.lanes.empty()) return "";
  return card(
      "Timeline of the stages, simulated",
      "who computes which micro-batch when: forward blue, backward green, gradients of weights violet; gaps are the bubble, in per cent "
      "on the right",
      stage_lanes(times));
}

std::string scaling_figure(const PlanPage& page) {
  if (page.scaling.size() < 2) return "";
  LineChart chart;
  chart.scale = LineChart::Scale::zero;
  ChartSeries line{"efficiency", "loss", {}};
  const double first = page.scaling.front().seconds;
  std::string rows;
  for (const ScalePoint& point : page.scaling) {
    line.points.push_back({std::log2(static_cast<double>(point.ranks)), 100 * first / point.seconds});
    rows += text("<tr><td>", point.ranks, " ranks</td><td>", fixed(100 * first / point.seconds, 1), " %</td></tr>\n");
  }
  chart.series.push_back(std::move(line));
  return text("<section class=\"grid2\">",
              card("Efficiency by number of ranks", "per cent of the speed of the smallest, the rows of a rank kept; x: log2 of the ranks",
                   svg(chart)),
              "<div class=\"card\"><table>", rows, "</table></div></section>\n");
}

/// The bytes that the rank sends in a step, by axis and link.
std::string wire_table(const PlanPage& page) {
  std::string rows;
  for (int32_t axis = 0; axis < kMeshAxes; ++axis) {
    const AxisTraffic& of = page.of_rank.numbers.traffic[static_cast<size_t>(axis)];
    if (of.bytes == 0 && of.collectives == 0) continue;
    rows += text("<tr><td>along ", name_of(static_cast<MeshAxis>(axis)), "</td><td>", of.collectives, "</td><td>", of.nodes);
    for (const LinkBytes* const sent : {&of.direct, &of.native})
      rows += text("</td><td>", text_of_bytes(sent->in_node), "</td><td>", text_of_bytes(sent->between_nodes));
    rows += "</td></tr>\n";
  }
  if (rows.empty()) return "";
  return text(
      "<section class=\"card lanes\"><h2>What this rank sends in a step</h2>"
      "<p class=\"note\">direct: the library's exchange, from each rank to each; native: NCCL's rings</p>"
      "<table>\n<tr><td></td><td>collectives</td><td>nodes</td><td>direct, in the node</td><td>direct, "
      "between nodes</td><td>native, in the node</td><td>native, between nodes</td></tr>\n",
      rows, "</table></section>\n");
}

std::string waits_table(const PlanPage& page) {
  std::map<TraceEvent::Kind, double> waited;
  for (const SimulatedSpan& span : page.spans)
    if (span.kind != TraceEvent::Kind::compute) waited[span.kind] += span.ended - span.began;
  if (waited.empty()) return "";
  constexpr std::array<std::string_view, 7> kWords = {
      "", "collectives on the computing thread", "", "posted collectives", "", "room for a message", "messages of other stages"};
  std::string rows;
  for (const auto& [kind, seconds] : waited)
    rows += text("<tr><td>", kWords[static_cast<size_t>(kind)], "</td><td>", fixed(seconds * 1e3, 2), " ms</td></tr>\n");
  return text("<section class=\"card lanes\"><h2>What the shown ranks wait for</h2><table>", rows, "</table></section>\n");
}

}  // namespace

std::string html_of(const PlanPage& page) {
  const std::string title = escape_html(page.title);
  std::string out = text(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>",
      title, "</title>\n<style>", kReportStyle, "</style>\n</head>\n<body>\n<main>\n<header><h1>", title, "</h1><p class=\"sub\">",
      escape_html(page.run.machine.name + ": " + page.run.machine.source), "</p></header>\n");
  out += tiles(page) + memory_figure(page) + timeline_figure(page) + waits_table(page) + wire_table(page) + scaling_figure(page);
  out += text("<section class=\"card lanes\"><h2>The plan</h2><pre>", escape_html(page.text), "</pre></section>\n");
  return out + text("<footer>Written by ScaleTrain.</footer>\n</main>\n<script>", kReportScript, "</script>\n</body>\n</html>\n");
}

std::string chrome_trace(const PlanPage& page) {
  constexpr std::array<std::string_view, 7> kNames = {"", "collective", "", "posted collective", "", "room for a message", "message"};
  const Mesh mesh = page.run.mesh();
  std::string out = "[\n";
  int32_t named = -1;
  std::vector<SimulatedSpan> spans(page.spans.begin(), page.spans.end());
  std::ranges::stable_sort(spans, {}, &SimulatedSpan::rank);
  for (const SimulatedSpan& span : spans) {
    const MeshPosition at = position_of(mesh, span.rank);
    if (span.rank != named) {
      named = span.rank;
      out += text("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":", named, ",\"args\":{\"name\":\"rank ", named, ", stage ", at.stage,
                  " (planned)\"}},\n");
    }
    std::string name = text("wait: ", kNames[static_cast<size_t>(span.kind)]);
    if (span.kind == TraceEvent::Kind::compute) {
      const auto of = std::ranges::find_if(page.classes, [&](const RankClass& each) { return each.at.stage == at.stage; });
      const bool is_known = span.section >= 0 && of != page.classes.end();
      name =
          is_known ? text(name_of(of->trace.phases[static_cast<size_t>(span.section)]), ' ', span.micro_batch) : "outside the instructions";
    }
    out += text("{\"name\":\"", name, "\",\"ph\":\"X\",\"pid\":", span.rank, ",\"tid\":0,\"ts\":", fixed(span.began * 1e6, 3),
                ",\"dur\":", fixed((span.ended - span.began) * 1e6, 3), "},\n");
  }
  out += "{\"name\":\"end\",\"ph\":\"M\",\"pid\":0}\n]\n";
  return out;
}

}  // namespace st
