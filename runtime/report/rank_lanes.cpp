#include "report/rank_lanes.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace st {
namespace {

constexpr double kLanesWidth = 1080, kNames = 66, kBetween = 4;  // of the viewBox; names of ranks; between steps
constexpr double kLane = 24, kBar = 18;

double tenths(double value) { return std::round(value * 10) / 10; }

std::string lane_bar(const char* style, double x, double y, double width) {
  if (width <= 0) return "";
  return text("<rect class=\"", style, "\" x=\"", tenths(x), "\" y=\"", tenths(y), "\" width=\"", tenths(width), "\" height=\"", kBar,
              "\"/>");
}

std::string lane_text(double x, double y, const char* anchor, const std::string& words) {
  return text("<text class=\"tick\" text-anchor=\"", anchor, "\" x=\"", tenths(x), "\" y=\"", tenths(y), "\">", words, "</text>\n");
}

std::string times_text(const RankTimes& times) {
  return text("computing ", tenths(times.computing() * 1e3), " ms, collectives ", tenths(times.exchange * 1e3), " ms, ",
              std::round(times.hidden() * 100), " % of it overlapped");
}

}  // namespace

std::string rank_lanes(std::span<const StepTimes> steps) {
  const auto longest = [](const StepTimes& step) { return std::ranges::max(step.ranks, {}, &RankTimes::seconds).seconds; };
  const size_t lanes = std::min(kMostLanes, steps.front().ranks.size());
  double seconds = 0;
  for (const StepTimes& step : steps) seconds += longest(step);
  const double scale = (kLanesWidth - kNames - kBetween * static_cast<double>(steps.size())) / std::max(seconds, 1e-9);
  const double foot = kLane * static_cast<double>(lanes) + 16;

  std::string out =
      text("<svg viewBox=\"0 0 ", kLanesWidth, ' ', foot + 6, "\" role=\"img\"><pattern id=\"hatch\" width=\"5\" height=\"5\" ",
           "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><path d=\"M0 0V5\"/></pattern>\n");
  for (size_t rank = 0; rank < lanes; ++rank)
    out += lane_text(kNames - 8, kLane * static_cast<double>(rank) + kBar - 4, "end", text("rank ", rank));
  double x = kNames;
  for (const StepTimes& step : steps) {
    for (size_t rank = 0; rank < lanes; ++rank) {
      const RankTimes& times = step.ranks[rank];
      const double y = kLane * static_cast<double>(rank), computing = times.computing() * scale;
      const double beside = std::min(times.exchange * times.hidden() * scale, computing);
      out += text("<g><title>rank ", rank, ", step ", step.step, ": ", times_text(times), "</title>");
      out += lane_bar("computing", x, y, computing) + lane_bar("hatch", x + computing - beside, y, beside);
      out += lane_bar("exposed", x + computing, y, std::min(times.exposed, times.seconds) * scale) + "</g>\n";
    }
    const double width = longest(step) * scale;
    if (width > 24) out += lane_text(x + width / 2, foot, "middle", text(step.step));
    x += width + kBetween;
  }
  return out + "</svg>\n";
}

StepTimes sum_of(std::span<const StepTimes> steps) {
  StepTimes sum = steps.front();
  for (const StepTimes& step : steps.subspan(1))
    for (size_t rank = 0; rank < sum.ranks.size(); ++rank) {
      sum.ranks[rank].seconds += step.ranks[rank].seconds;
      sum.ranks[rank].exchange += step.ranks[rank].exchange;
      sum.ranks[rank].exposed += step.ranks[rank].exposed;
    }
  return sum;
}

}  // namespace st
