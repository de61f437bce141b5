// A table of fractions as colours, in HTML and as a PNG image.
#pragma once

#include <string>
#include <vector>

namespace cli {

struct HeatMap {
  std::string title, row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // 0 to 1, by row; below 0: no value
  std::vector<std::vector<std::string>> notes;
};

/// A self-contained page.
std::string html_of(const std::string& title, const std::string& text, const std::vector<HeatMap>& maps);

/// The maps from left to right, without text; the page has the numbers. The deflate stream is stored, not compressed.
std::string png_of(const std::vector<HeatMap>& maps);

}  // namespace cli
