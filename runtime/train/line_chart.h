// A line chart as inline SVG: nothing to load, colours from the page's style sheet.
#pragma once

#include <string>
#include <vector>

namespace st {

struct ChartPoint {
  double x = 0, y = 0;  // y not finite: the line breaks there
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
    spread,  // logarithmic where values are positive and span a factor of 30, else from zero
  };
  int width = 1080, height = 300;  // of the viewBox; the page scales it
  Scale scale = Scale::fit;
  double from = 0, to = 0;          // x; from == to: as the series have it
  std::vector<ChartSeries> series;  // painted in this order
  std::vector<ChartLevel> levels;
  std::vector<double> marks;  // x of ticks at the foot, for events
};

/// The <svg> element. A page's script can read every value back: data-axes has "left right top bottom x0 x1 y0 y1 log".
std::string svg(const LineChart& chart);

/// At most `buckets` * 2 points that look the same: of each bucket the lowest and the highest, in their order; a bucket without a finite
/// value keeps one that breaks the line.
std::vector<ChartPoint> thin(const std::vector<ChartPoint>& points, size_t buckets);

/// The value at each finite point of the straight line that fits it and at most `reach` neighbours on either side best: where both sides
/// are there that is their mean; at the ends it neither lags behind a falling curve nor bends to the last value.
std::vector<ChartPoint> smooth(const std::vector<ChartPoint>& points, size_t reach);

/// "1,250", "0.0003", "2.5e-06", "184.3k": short, for axes and tiles.
std::string short_number(double value);

/// Text for HTML content and attributes in double quotes.
std::string escape_html(const std::string& text);

}  // namespace st
