// Writes one JSON object as one line. It must be cheap: the step log is written on every step.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace st {

/// JsonLine line; line.add("step", 12).add("loss", loss); stream << line.finish();
/// Reusable: start() keeps the memory. Keys are escaped and stay in order; the caller must not repeat one.
class JsonLine {
 public:
  JsonLine() { start(); }

  void start() { out_ = "{"; }

  JsonLine& add(std::string_view key, double value);  // 9 significant digits; null if not finite
  JsonLine& add(std::string_view key, std::string_view value);
  JsonLine& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  JsonLine& add(std::string_view key, bool value);
  template <std::integral T>
  JsonLine& add(std::string_view key, T value) {
    begin(key);
    append_number(value);
    return *this;
  }
  /// `value` is JSON already.
  JsonLine& add_json(std::string_view key, std::string_view value);

  /// Closes the object and ends the line. Valid until the next start().
  const std::string& finish();
  /// The object so far, closed, without the newline: for use as a value elsewhere.
  std::string text() const { return out_ + '}'; }

 private:
  void begin(std::string_view key);
  template <std::integral T>
  void append_number(T value) {
    if constexpr (std::signed_integral<T>) {
      append_integer(static_cast<int64_t>(value));
    } else {
      append_integer(static_cast<uint64_t>(value));
    }
  }
  void append_integer(int64_t value);
  void append_integer(uint64_t value);

  std::string out_;
};

/// Appends `value` as a quoted JSON string. Bytes that are not UTF-8 become U+FFFD, so that every reader accepts the line.
void append_json_string(std::string& out, std::string_view value);

/// "[a,b]" of values that are JSON already.
std::string json_list(const std::vector<std::string>& values);

/// A number as the log writes it: 9 significant digits, null when not finite.
void append_json_number(std::string& out, double value);

}  // namespace st
