#include "report/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/plain_locale.h"
#include "base/text.h"
#include "report/line_chart.h"
#include "report/rank_lanes.h"
#include "report/report_page.h"
#include "report/stage_lanes.h"

namespace st {
namespace {

constexpr size_t kBuckets = 320;  // pairs of points a line: more than a screen resolves
constexpr size_t kMostDots = 40;  // more validation points are a line without dots

std::string fixed(double value, int digits) {
  const PlainLocale locale;
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%.*f", digits, value);
  return out.data();
}

std::string duration(double seconds) {
  if (seconds < 60) return fixed(seconds, 1) + " s";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return text(whole / 60, "m ", whole % 60, "s");
  return text(whole / 3600, "h ", whole % 3600 / 60, "m");
}

template <class Get>
std::vector<ChartPoint> series_of(const RunSummary& run, Get get) {
  std::vector<ChartPoint> points;
  points.reserve(run.steps.size());
  for (const StepReport& step : run.steps) points.push_back({static_cast<double>(step.step), get(step)});
  return points;
}

/// NaN without validation.
double final_validation(const RunSummary& run) { return run.validation.empty() ? NAN : run.validation.back().loss; }

/// Tokens a second of the median step, so that the first one's set-up does not count.
double typical_speed(const RunSummary& run) {
  std::vector<double> speeds;
  for (const StepReport& step : run.steps)
    if (std::isfinite(step.tokens_per_second)) speeds.push_back(step.tokens_per_second);
  if (speeds.empty()) return NAN;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

std::string verdict(const RunSummary& run) {
  const double loss = final_validation(run), below = run.bigram_loss - loss;
  if (!std::isfinite(below)) return "";
  const std::string how = below > 0 ? "below" : "above";
  return text("<p class=\"verdict ", how, "\">Validation loss <b>", fixed(loss, 3), "</b> is <b>", fixed(std::abs(below), 3),
              "</b> nats per token ", how, " that of a bigram table on the same split (", fixed(run.bigram_loss, 3), ").</p>\n");
}

std::string tile(const std::string& value, const std::string& name) {
  return text("<div class=\"tile\"><b>", value, "</b><span>", name, "</span></div>\n");
}

std::string tiles(const RunSummary& run) {
  std::string out = "<section class=\"tiles\">\n";
  if (const double loss = final_validation(run); std::isfinite(loss)) out += tile(fixed(loss, 3), "validation loss");
  if (!run.steps.empty()) {
    const StepReport& last = run.steps.back();
    out += tile(std::isfinite(last.loss) ? fixed(last.loss, 3) : "not finite", "training loss");
    out += tile(short_number(static_cast<double>(last.step)), "steps");
    out += tile(short_number(static_cast<double>(last.tokens)), "tokens seen");
    if (const double speed = typical_speed(run); std::isfinite(speed)) out += tile(short_number(std::round(speed)), "tokens per second");
  }
  if (run.parameters > 0) out += tile(short_number(static_cast<double>(run.parameters)), "parameters");
  if (run.seconds > 0) out += tile(duration(run.seconds), "duration");
  return out + "</section>\n";
}

/// A card with a chart; the legend only where lines must be told apart.
std::string figure(const std::string& title, const std::string& note, const LineChart& chart, bool wide = false) {
  std::string out = text("<figure class=\"card\"><figcaption><h2>", title, "</h2>");
  if (chart.series.size() > 1) {
    out += "<div class=\"legend\">";
    for (const ChartSeries& series : chart.series)
      out += text("<span><i class=\"", series.style, "\"></i>", escape_html(series.name), "</span>");
    out += note.empty() ? "</div>" : text("<span>", note, "</span></div>");
  } else {
    out += text("<p class=\"note\">", note, "</p>");
  }
  return out + text("</figcaption><div class=\"tip\"></div>", wide ? "<div class=\"wide\">" : "<div>", svg(chart), "</div></figure>\n");
}

/// All charts of a run have the same steps below them, skipped ones too.
LineChart chart_of(const RunSummary& run, int width, int height) {
  LineChart chart;
  chart.width = width;
  chart.height = height;
  chart.from = static_cast<double>(run.steps.front().step);
  chart.to = static_cast<double>(run.steps.back().step);
  return chart;
}

std::string loss_figure(const RunSummary& run) {
  LineChart chart = chart_of(run, 1080, 340);
  const auto loss = series_of(run, [](const StepReport& step) { return step.loss; });
  const bool noisy = loss.size() >= 20;
  chart.series.push_back({"loss of each step", noisy ? "raw" : "loss", thin(loss, kBuckets)});
  if (noisy) {
    // A fiftieth of the run on either side: enough to see through the noise of a batch, little enough to keep the bends.
    const size_t reach = std::clamp<size_t>(loss.size() / 50, 2, 200);
    chart.series.push_back({"smoothed", "loss", thin(smooth(loss, reach), kBuckets / 2)});
  }
  ChartSeries validation{"validation", run.validation.size() <= kMostDots ? "validation dots" : "validation", {}};
  for (const ValidationPoint& point : run.validation) validation.points.push_back({static_cast<double>(point.step), point.loss});
  validation.points = thin(validation.points, kBuckets / 2);
  if (!validation.points.empty()) chart.series.push_back(std::move(validation));
  if (std::isfinite(run.bigram_loss)) chart.levels.push_back({"bigram table " + fixed(run.bigram_loss, 3), run.bigram_loss});

  std::vector<ChartPoint> skipped;
  for (const StepReport& step : run.steps)
    if (step.skipped) skipped.push_back({static_cast<double>(step.step), 0});
  for (const ChartPoint& point : thin(skipped, kBuckets / 2)) chart.marks.push_back(point.x);
  std::string note = run.steps.front().step == 1 ? "" : text("from step ", run.steps.front().step, " on");
  if (!skipped.empty())
    note += text(note.empty() ? "" : ", ", skipped.size(), skipped.size() == 1 ? " step" : " steps", " skipped (red ticks)");
  return figure("Loss", note, chart, true);
}

template <class Get>
std::string step_figure(const RunSummary& run, const std::string& title, const std::string& note, const std::string& name,
                        const std::string& style, LineChart::Scale scale, Get get) {
  LineChart chart = chart_of(run, 530, 230);
  chart.scale = scale;
  chart.series.push_back({name, style, thin(series_of(run, get), kBuckets)});
  return figure(title, note, chart);
}

/// A chart for each "metric.*" of the evaluations.
std::string metric_figures(const RunSummary& run) {
  std::vector<std::string> names;
  for (const ValidationPoint& point : run.validation)
    for (const Metric& metric : point.metrics)
      if (std::ranges::find(names, metric.name) == names.end()) names.push_back(metric.name);
  std::string out;
  for (const std::string& name : names) {
    LineChart chart = chart_of(run, 530, 230);
    chart.series.push_back({name, run.validation.size() <= kMostDots ? "validation dots" : "validation", {}});
    auto& points = chart.series.back().points;
    for (const ValidationPoint& point : run.validation)
      for (const Metric& metric : point.metrics)
        if (metric.name == name) points.push_back({static_cast<double>(point.step), metric.mean});
    points = thin(points, kBuckets / 2);
    out += figure(escape_html(name), "mean over the rows of each evaluation", chart);
  }
  return out;
}

std::string memory_figure(const RunSummary& run) {
  if (run.memory.empty()) return "";
  int64_t most = 1, all = 0;
  for (const MemoryUse& use : run.memory) {
    most = std::max(most, use.bytes);
    all += use.bytes;
  }
  std::string out = text("<figure class=\"card\"><figcaption><h2>Memory</h2><p class=\"note\">", text_of_bytes(all),
                         " in total</p></figcaption><div class=\"bars\">\n");
  for (const MemoryUse& use : run.memory) {
    const double share = 100 * static_cast<double>(use.bytes) / static_cast<double>(most);
    out += text("<span>", escape_html(use.role), "</span><div><i style=\"width:", fixed(share, 1), "%\"></i></div><b>",
                text_of_bytes(use.bytes), "</b>\n");
  }
  return out + "</div></figure>\n";
}

/// Shows only the last steps: more would be too small to read.
std::string timeline_figure(const RunSummary& run) {
  constexpr size_t kSteps = 8;
  if (run.timeline.empty()) return "";
  const std::span<const StepTimes> steps = std::span(run.timeline).last(std::min(kSteps, run.timeline.size()));
  const StepTimes sum = sum_of(steps);
  std::string note = steps.size() == 1 ? text("Step ", steps.front().step) : text("Steps ", steps.front().step, " to ", steps.back().step);
  if (const double score = sum.straggler(); std::isfinite(score))
    note += text("; straggler score <b>", fixed(score, 2), "</b>: rank ", sum.slowest(), " computed ", fixed(100 * (score - 1), 0),
                 " % longer than the mean of all");
  if (sum.ranks.size() > kMostLanes) note += text("; the first ", kMostLanes, " of ", sum.ranks.size(), " ranks are shown");
  return text("<figure class=\"card lanes\"><figcaption><h2>Ranks</h2><p class=\"note\">", note,
              "</p><div class=\"legend\"><span><i class=\"computing\"></i>computing</span><span><i class=\"beside\"></i>collectives that "
              "overlap it</span><span><i class=\"exposed\"></i>other collectives, waits included</span></div></figcaption><div "
              "class=\"wide\">",
              rank_lanes(steps), "</div></figure>\n");
}

/// The last step of a pipeline.
std::string pipeline_figure(const RunSummary& run) {
  const PipelineTimes& times = run.pipeline;
  const double measured = times.bubble();
  if (!std::isfinite(measured)) return "";
  std::string note = text("Step ", times.step, " by ", escape_html(run.schedule), "; bubble <b>", fixed(100 * measured, 1),
                          " %</b> of the time from the first action to the end of the last one, the mean of all ranks");
  if (std::isfinite(run.schedule_bubble))
    note += text("; by the schedule, if all parts take the same time, <b>", fixed(100 * run.schedule_bubble, 1), " %</b>");
  if (const size_t lanes = drawn_lanes(times); lanes < times.lanes.size())
    note += text("; the first ", lanes, " of ", times.lanes.size(), " ranks are shown");
  const bool is_split = std::ranges::any_of(times.lanes, [](const StageLane& lane) {
    return std::ranges::any_of(lane.runs, [](const StageRun& of) { return of.action.phase == Phase::backward_weight; });
  });
  const char* const backward =
      is_split ? "backward, gradients of inputs</span><span><i class=\"weight\"></i>backward, gradients of weights" : "backward";
  return text("<figure class=\"card lanes\"><figcaption><h2>Pipeline</h2><p class=\"note\">", note,
              "</p><div class=\"legend\"><span><i class=\"forward\"></i>forward</span><span><i class=\"backward\"></i>", backward,
              "</span></div></figcaption><div class=\"wide\">", stage_lanes(times), "</div></figure>\n");
}

std::string sample_card(const RunSummary& run) {
  if (run.sample.empty()) return "";
  return text("<section class=\"card\" style=\"margin-top:16px\"><h2>Sample</h2><pre><b>", escape_html(run.prompt), "</b>",
              escape_html(run.sample), "</pre></section>\n");
}

std::string fact_cards(const RunSummary& run) {
  std::string out = "<section class=\"grid2\">\n";
  for (const FactGroup& group : run.facts) {
    out += text("<div class=\"card\"><h2>", escape_html(group.title), "</h2><table>\n");
    for (const RunFact& fact : group.facts)
      out += text("<tr><td>", escape_html(fact.name), "</td><td>", escape_html(fact.value), "</td></tr>\n");
    out += "</table></div>\n";
  }
  return out + "</section>\n";
}

}  // namespace

std::string html_report(const RunSummary& run) {
  const std::string title = escape_html(run.title);
  std::string out = text(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>",
      title, "</title>\n<style>", kReportStyle, "</style>\n</head>\n<body>\n");
  out +=
      "<svg width=\"0\" height=\"0\" style=\"position:absolute\"><marker id=\"dot\" viewBox=\"0 0 8 8\" refX=\"4\" refY=\"4\" "
      "markerWidth=\"8\" "
      "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\"><circle cx=\"4\" cy=\"4\" r=\"3.2\" fill=\"var(--orange)\"/></marker></svg>\n";
  out += text("<main>\n<header><h1>", title, "</h1><p class=\"sub\">", escape_html(run.subtitle), "</p>", verdict(run), "</header>\n",
              tiles(run));
  if (run.steps.empty()) {
    out += "<section class=\"card\"><p class=\"note\">No step was taken.</p></section>\n";
  } else {
    out += loss_figure(run);
    out += "<section class=\"grid2\">\n" + metric_figures(run);
    const std::string ended = run.step_past_schedule == 0 ? "" : text("; its schedule ended before step ", run.step_past_schedule);
    out += step_figure(run, "Learning rate", "of each step" + ended, "learning rate", "rate", LineChart::Scale::zero,
                       [](const StepReport& s) { return s.lr; });
    out += step_figure(run, "Gradient norm", "L2 over all parameters, before clipping", "norm", "norm", LineChart::Scale::spread,
                       [](const StepReport& s) { return s.grad_norm; });
    out += step_figure(run, "Speed", "tokens per second", "tokens/s", "speed", LineChart::Scale::zero,
                       [](const StepReport& s) { return s.tokens_per_second; });
    if (std::ranges::any_of(run.steps, [](const StepReport& s) { return std::isfinite(s.gradient_noise_scale); }))
      out += step_figure(run, "Gradient noise scale", "batch size, in sequences, beyond which larger batches stop paying", "noise scale",
                         "norm", LineChart::Scale::spread, [](const StepReport& s) { return s.gradient_noise_scale; });
    const bool has_hidden = std::ranges::any_of(run.steps, [](const StepReport& s) { return s.exchange_hidden > 0; });
    if (std::ranges::any_of(run.steps, [](const StepReport& s) { return std::isfinite(s.exchange_milliseconds); }))
      out += step_figure(run, "Collectives", "per cent of a step that rank 0 spends in collectives without computing, waits included", "%",
                         "speed", LineChart::Scale::zero, [](const StepReport& s) {
                           return 100 * s.exchange_milliseconds * (s.exchange_hidden > 0 ? 1 - s.exchange_hidden : 1) / s.milliseconds;
                         });
    if (std::ranges::any_of(run.steps, [](const StepReport& s) { return std::isfinite(s.straggler); }))
      out += step_figure(run, "Straggler score", "computing time of the slowest rank divided by the mean of all", "score", "rate",
                         LineChart::Scale::fit, [](const StepReport& s) { return s.straggler; });
    if (has_hidden)
      out += step_figure(run, "Overlap", "per cent of rank 0's collectives that overlap its computing", "%", "speed",
                         LineChart::Scale::zero, [](const StepReport& s) { return 100 * s.exchange_hidden; });
    out += memory_figure(run) + "</section>\n" + timeline_figure(run) + pipeline_figure(run);
  }
  out += sample_card(run) + fact_cards(run);
  out += text("<footer>", run.state.empty() ? "" : "State ", escape_html(run.state), run.state.empty() ? "" : ". ",
              "Written by ScaleTrain.</footer>\n");
  return out + text("</main>\n<script>", kReportScript, "</script>\n</body>\n</html>\n");
}

}  // namespace st
