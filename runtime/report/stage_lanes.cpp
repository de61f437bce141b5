#include "report/stage_lanes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "report/rank_lanes.h"

namespace st {
namespace {

constexpr double kPageWidth = 1080, kShares = 56;  // of the viewBox; bubbles on the right
constexpr double kStageLane = 28, kStageBox = 22, kDigit = 7, kMargin = 2, kLetter = 6.2;
constexpr size_t kMostBoxes = 1600, kMostNumbers = 480;  // about 24 and 36 bytes of the page each
constexpr std::array<Phase, 4> kShades = {Phase::forward, Phase::backward, Phase::backward_input, Phase::backward_weight};

double to_tenths(double value) { return std::round(value * 10) / 10; }

const char* style_of(Phase phase) {
  if (phase == Phase::forward) return "forward";
  return phase == Phase::backward_weight ? "weight" : "backward";
}

std::string percent(double share) { return std::isfinite(share) ? text(std::round(share * 100), " %") : ""; }

/// "stage 0, data 1, tensor 0", with the axes of several ranks.
std::string name_of_lane(const PipelineTimes& times, const StageLane& lane) {
  const auto number_of = [&](const char* axis, int32_t StageLane::*rank) {
    const bool has_several = std::ranges::any_of(times.lanes, [&](const StageLane& other) { return other.*rank > 0; });
    return has_several ? text(", ", axis, ' ', lane.*rank) : std::string();
  };
  return text("stage ", lane.stage, number_of("data", &StageLane::data_rank), number_of("tensor", &StageLane::tensor_rank));
}

struct StageDrawing {
  const PipelineTimes& times;
  double names = 110, began = 0, scale = 0;  // names: the width of the longest one, at least
  size_t numbers = 0;                        // drawn

  double x(double seconds) const { return names + (seconds - began) * scale; }

  /// All boxes of a shade as one path.
  std::string boxes(const StageLane& lane, Phase phase, double y) const {
    std::string path;
    for (const StageRun& run : lane.runs) {
      if (run.action.phase != phase) continue;
      const double from = to_tenths(x(run.computed_from())), width = to_tenths((run.ended - run.computed_from()) * scale);
      path += text('M', from, ' ', y, 'h', width, 'v', kStageBox, "h-", width, 'z');
    }
    return path.empty() ? "" : text("<path class=\"", style_of(phase), "\" d=\"", path, "\"/>");
  }

  /// The micro-batches' numbers in a stage's first chunk, or in the others.
  std::string micro_batches(const StageLane& lane, bool is_later, double y) {
    std::string out;
    for (const StageRun& run : lane.runs) {
      const std::string digits = text(run.action.micro_batch);
      const double width = (run.ended - run.computed_from()) * scale;
      if ((run.action.chunk > 0) != is_later || width < kDigit * static_cast<double>(digits.size()) + kMargin) continue;
      if (numbers == kMostNumbers) break;
      ++numbers;
      out += text("<text x=\"", to_tenths(x(run.computed_from()) + width / 2), "\" y=\"", y + kStageBox - 6, "\">", digits, "</text>");
    }
    return out.empty() ? "" : text("<g class=\"number", is_later ? " later" : "", "\">", out, "</g>");
  }

  std::string lane(const StageLane& of, double y) {
    const std::string name = name_of_lane(times, of);
    std::string out =
        text("<g><title>rank ", of.rank, ", ", name, ": ", of.runs.size(), " actions, bubble ", percent(times.bubble(of)),
             "</title><text class=\"tick\" text-anchor=\"end\" x=\"", names - 8, "\" y=\"", y + kStageBox - 6, "\">", name, "</text>");
    for (const Phase phase : kShades) out += boxes(of, phase, y);
    for (const bool is_later : {false, true}) out += micro_batches(of, is_later, y);
    return out + text("<text class=\"tick\" text-anchor=\"end\" x=\"", kPageWidth - 6, "\" y=\"", y + kStageBox - 6, "\">",
                      percent(times.bubble(of)), "</text></g>\n");
  }
};

}  // namespace

size_t drawn_lanes(const PipelineTimes& times) {
  size_t lanes = 0;
  for (size_t boxes = 0; lanes < std::min(kMostLanes, times.lanes.size()); ++lanes) {
    boxes += times.lanes[lanes].runs.size();
    if (lanes > 0 && boxes > kMostBoxes) break;
  }
  return lanes;
}

std::string stage_lanes(const PipelineTimes& times) {
  const size_t lanes = drawn_lanes(times);
  const double began = times.began(), seconds = std::max(times.ended() - began, 1e-9);
  StageDrawing drawing{.times = times, .began = began};
  for (const StageLane& lane : times.lanes)
    drawing.names = std::max(drawing.names, 16 + kLetter * static_cast<double>(name_of_lane(times, lane).size()));
  drawing.scale = (kPageWidth - drawing.names - kShares) / seconds;
  std::string out = text("<svg viewBox=\"0 0 ", kPageWidth, ' ', kStageLane * static_cast<double>(lanes), "\" role=\"img\">\n");
  for (size_t lane = 0; lane < lanes; ++lane) out += drawing.lane(times.lanes[lane], kStageLane * static_cast<double>(lane));
  return out + "</svg>\n";
}

}  // namespace st
