#include "forecast_facts.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace cli {
namespace {

constexpr size_t kMostDifferences = 3;

std::string milliseconds(const Json& seconds) {
  std::array<char, 40> out{};
  std::snprintf(out.data(), out.size(), "%.4g ms", seconds.get<double>() * 1e3);
  return out.data();
}

}  // namespace

Json largest_differences(const Json& forecast) {
  Json rows = Json::object();
  const Json& all = forecast["differences"];
  for (size_t i = 0; i < std::min(all.size(), kMostDifferences); ++i)
    rows[all[i]["what"].get<std::string>()] =
        milliseconds(all[i]["predicted"]) + " predicted, " + milliseconds(all[i]["measured"]) + " measured";
  return rows;
}

Json forecast_facts(const Json& forecast) {
  Json rows = {{"a step, predicted", milliseconds(forecast["step_seconds"])}};
  if (const Json& measured = forecast["measured_seconds"]; measured.is_number()) {
    std::array<char, 40> difference{};
    std::snprintf(difference.data(), difference.size(), "%+.1f %%",
                  100 * (forecast["step_seconds"].get<double>() / measured.get<double>() - 1));
    rows["a step, measured (median)"] = milliseconds(measured);
    rows["difference"] = difference.data();
  }
  rows.update(largest_differences(forecast));
  rows["rates"] = (forecast["measured"].get<bool>() ? "measured: " : "estimated: ") + forecast["source"].get<std::string>();
  return rows;
}

}  // namespace cli
