// A line chart as inline SVG, with colours from the page's style sheet; loads nothing.
#pragma once

#include <string>
#include <vector>

namespace st {

struct ChartPoint {
  double x = 0, y = 0;  // y not finite: breaks the line
};

struct ChartSeries {
  std::string name;
  std::string style;  // class in the page's style sheet
  std::vector<ChartPoint> points;
};

struct ChartLevel {  // a dashed horizontal line
  std::string name;
  double y = 0;
};

struct LineChart {
  enum class Scale {
    fit,     // from the smallest value to the largest
    zero,    // from zero
    spread,  // logarithmic if all values are positive and span a factor of 30, else from zero
  };
  int width = 1080, height = 300;  // of the viewBox; the page scales it
  Scale scale = Scale::fit;
  double from = 0, to = 0;          // x; from == to: the range of the series
  std::vector<ChartSeries> series;  // painted in this order
  std::vector<ChartLevel> levels;
  std::vector<double> marks;  // x of ticks at the foot, for events
};

/// The <svg> element. A script can recover every value: data-axes has "left right top bottom x0 x1 y0 y1 log".
std::string svg(const LineChart& chart);

/// Thins points to at most `buckets` * 2 that look the same: the lowest and highest of each bucket, in order. A bucket without a finite
/// value keeps one point that breaks the line.
std::vector<ChartPoint> thin(const std::vector<ChartPoint>& points, size_t buckets);

/// At each finite point, the value of the straight line fitted to it and up to `reach` neighbours on either side. Inside the curve that is
/// their mean; at the ends it neither lags a falling curve nor bends towards the last value.
std::vector<ChartPoint> smooth(const std::vector<ChartPoint>& points, size_t reach);

/// "1,250", "0.0003", "2.5e-06", "184.3k": short, for axes and tiles.
std::string short_number(double value);

/// Escapes text for HTML content and attributes in double quotes.
std::string escape_html(const std::string& text);

}  // namespace st
