#include "report/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/plain_locale.h"
#include "base/text.h"

namespace st {
namespace {

constexpr double kLeft = 66, kRight = 22, kTop = 12, kBottom = 34;  // room for tick labels around the plot

template <class... Values>
std::string format(const char* pattern, Values... values) {
  const PlainLocale locale;
  std::array<char, 256> line{};
  const int size = std::snprintf(line.data(), line.size(), pattern, values...);
  return {line.data(), static_cast<size_t>(std::clamp(size, 0, static_cast<int>(line.size()) - 1))};
}

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

struct Axis {
  double low, high, from, to;  // values low..high lie at pixels from..to
  bool logarithmic = false;

  double at(double value) const {
    const auto place = [this](double v) { return logarithmic ? std::log(v) : v; };
    return from + (place(value) - place(low)) / (place(high) - place(low)) * (to - from);
  }
};

/// 1, 2, 2.5 or 5 times a power of ten, so that about `count` of them fill the range.
double tick_step(double range, int count) {
  const double raw = range / count, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double step : {1.0, 2.0, 2.5, 5.0})
    if (raw <= step * power) return step * power;
  return 10 * power;
}

std::vector<double> ticks(const Axis& axis, int count) {
  std::vector<double> out;
  if (axis.logarithmic) {
    const bool dense = axis.high / axis.low < 1e3;
    for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high; power *= 10)
      for (const double step : {1.0, 2.0, 5.0})
        if (const double tick = power * step; tick >= axis.low && tick <= axis.high && (dense || step == 1)) out.push_back(tick);
    return out;
  }
  const double step = tick_step(axis.high - axis.low, count);
  for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + step * 1e-9; ++i) out.push_back(i * step);
  return out;
}

Axis x_axis(const LineChart& chart) {
  Range range;
  if (chart.from < chart.to) range = {chart.from, chart.to};
  for (const ChartSeries& series : chart.series)
    for (const ChartPoint& point : series.points) range.take(point.x);
  if (range.empty()) range = {0, 1};
  if (range.low == range.high) range = {range.low - 1, range.high + 1};
  return {range.low, range.high, kLeft, chart.width - kRight};
}

Axis y_axis(const LineChart& chart) {
  Range range;
  for (const ChartSeries& series : chart.series)
    for (const ChartPoint& point : series.points) range.take(point.y);
  for (const ChartLevel& level : chart.levels) range.take(level.y);
  if (range.empty()) range = {0, 1};

  Axis axis{range.low, range.high, chart.height - kBottom, kTop};
  axis.logarithmic = chart.scale == LineChart::Scale::spread && range.low > 0 && range.high / range.low > 30;
  if (axis.logarithmic) {
    axis.low /= 1.15;
    axis.high *= 1.15;
    return axis;
  }
  if (chart.scale != LineChart::Scale::fit) axis.low = std::min(0.0, axis.low);
  double margin = 0.06 * (axis.high - axis.low);
  if (margin == 0) margin = axis.high == 0 ? 1 : std::abs(axis.high) * 0.1;
  axis.high += margin;
  if (axis.low != 0) axis.low -= margin;
  return axis;
}

std::string path(const ChartSeries& series, const Axis& x, const Axis& y) {
  std::string d;
  bool drawing = false;
  for (const ChartPoint& point : series.points) {
    const bool finite = std::isfinite(point.y) && (!y.logarithmic || point.y > 0);
    if (finite) d += format("%c%.1f %.2f", drawing ? 'L' : 'M', x.at(point.x), y.at(point.y));
    drawing = finite;
  }
  // A lone point is a line of no length: its round caps are painted.
  const bool lone = series.points.size() == 1;
  if (lone && drawing) d += "h0";
  return text("<path class=\"line ", series.style, lone ? " lone" : "", "\" data-name=\"", escape_html(series.name), "\" d=\"", d,
              "\"/>\n");
}

/// One unit for a whole axis: "5k" beside "10k", not "5,000".
std::string tick_label(double tick, const std::vector<double>& all) {
  const bool thousands = !all.empty() && all.back() >= 1e4 && all.back() < 1e6;
  return thousands && tick != 0 ? short_number(tick / 1e3) + "k" : short_number(tick);
}

std::string grid(const LineChart& chart, const Axis& x, const Axis& y) {
  std::string out;
  const double right = chart.width - kRight, foot = chart.height - kBottom;
  const auto rows = ticks(y, chart.height / 45), columns = ticks(x, chart.width / 90);
  for (const double tick : rows) {
    out += format("<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>", kLeft, right, y.at(tick), y.at(tick));
    out += format("<text class=\"tick\" text-anchor=\"end\" x=\"%.0f\" y=\"%.1f\">%s</text>\n", kLeft - 8, y.at(tick) + 4,
                  tick_label(tick, rows).c_str());
  }
  for (const double tick : columns) {
    if (tick != std::round(tick)) continue;  // there is no half step
    out += format("<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.0f\">%s</text>\n", x.at(tick), foot + 20,
                  tick_label(tick, columns).c_str());
  }
  return out + format("<line class=\"axis\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", kLeft, right, foot, foot);
}

}  // namespace

std::string svg(const LineChart& chart) {
  const Axis x = x_axis(chart), y = y_axis(chart);
  const double foot = chart.height - kBottom;
  std::string out = text("<svg viewBox=\"0 0 ", chart.width, " ", chart.height, "\" role=\"img\" data-axes=\"");
  out += format("%g %g %g %g %.9g %.9g %.9g %.9g %d\">\n", x.from, x.to, y.to, y.from, x.low, x.high, y.low, y.high, y.logarithmic ? 1 : 0);
  out += grid(chart, x, y);
  for (const ChartLevel& level : chart.levels) {
    out += format("<line class=\"level\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>", x.from, x.to, y.at(level.y), y.at(level.y));
    out += format("<text class=\"tick\" text-anchor=\"end\" x=\"%.0f\" y=\"%.1f\">", x.to - 4, y.at(level.y) - 6) +
           escape_html(level.name) + "</text>\n";
  }
  for (const double mark : chart.marks)
    out += format("<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x.at(mark), x.at(mark), foot - 8, foot);
  for (const ChartSeries& series : chart.series) out += path(series, x, y);
  return out + format("<line class=\"rule\" y1=\"%.1f\" y2=\"%.1f\"/></svg>\n", y.to, y.from);
}

std::vector<ChartPoint> thin(const std::vector<ChartPoint>& points, size_t buckets) {
  if (points.size() <= 2 * buckets) return points;
  std::vector<ChartPoint> out;
  out.reserve(2 * buckets);
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    const size_t begin = bucket * points.size() / buckets, end = (bucket + 1) * points.size() / buckets;
    size_t low = end, high = end;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(points[i].y)) continue;
      if (low == end || points[i].y < points[low].y) low = i;
      if (high == end || points[i].y > points[high].y) high = i;
    }
    if (low == end) {
      out.push_back(points[begin]);
      continue;
    }
    out.push_back(points[std::min(low, high)]);
    if (low != high) out.push_back(points[std::max(low, high)]);
  }
  return out;
}

std::vector<ChartPoint> smooth(const std::vector<ChartPoint>& points, size_t reach) {
  std::vector<ChartPoint> finite;
  for (const ChartPoint& point : points)
    if (std::isfinite(point.y)) finite.push_back(point);

  std::vector<ChartPoint> out = finite;
  for (size_t i = 0; i < finite.size(); ++i) {
    const size_t begin = i - std::min(i, reach), end = std::min(i + reach + 1, finite.size());
    double count = 0, x = 0, y = 0, xx = 0, xy = 0;  // least squares with point i as the origin
    for (size_t j = begin; j < end; ++j) {
      const double dx = finite[j].x - finite[i].x;
      count += 1;
      x += dx;
      y += finite[j].y;
      xx += dx * dx;
      xy += dx * finite[j].y;
    }
    const double spread = count * xx - x * x;
    out[i].y = spread > 0 ? (y * xx - x * xy) / spread : y / count;
  }
  return out;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return std::isnan(value) ? "n/a" : value > 0 ? "inf" : "-inf";
  if (size >= 1e13) return format("%.3g", value);
  constexpr std::array<std::pair<double, const char*>, 3> kUnits = {{{1e9, "G"}, {1e6, "M"}, {1e5, "k"}}};
  for (const auto& [least, unit] : kUnits)
    if (size >= least) return format("%.4g%s", value / (least == 1e5 ? 1e3 : least), unit);
  if (size >= 1000 && value == std::round(value))
    return format(value < 0 ? "-%d,%03d" : "%d,%03d", static_cast<int>(size) / 1000, static_cast<int>(size) % 1000);
  // A sum of steps like 0.6000000000000001 or 1e-17 is not to be seen.
  return format("%.4g", size < 1e-15 ? 0.0 : value);
}

std::string escape_html(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace st
