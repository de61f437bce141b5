#include "base/interval.h"

#include <charconv>

namespace st {

bool is_inside(double value, std::string_view interval) {
  const size_t comma = interval.find(',');
  const auto bound = [](std::string_view number) {
    double read = 0;
    std::from_chars(number.data(), number.data() + number.size(), read);  // reads "inf" too; not strtod, which obeys the host's locale
    return read;
  };
  const double low = bound(interval.substr(1, comma - 1));
  const double high = bound(interval.substr(comma + 1, interval.size() - comma - 2));
  return (interval.front() == '[' ? value >= low : value > low) && (interval.back() == ']' ? value <= high : value < high);
}

std::string interval_text(std::string_view interval, bool whole) {
  std::string out(interval);
  out.insert(out.find(',') + 1, " ");
  if (const size_t infinite = out.find("inf)"); whole && infinite != std::string::npos) out.replace(infinite, 3, "2^63");
  return out;
}

}  // namespace st
