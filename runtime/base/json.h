// JSON in: a parser whose errors name the text and the place, and the value that it makes. For JSON out, see json_line.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace st {

/// A value as it was read. Not nlohmann's, whose destructor asks for memory and ends the process when there is none.
class Json {
 public:
  using Members = std::vector<std::pair<std::string, Json>>;
  enum class Kind : uint8_t { null, boolean, whole, large, real, text, list, object };  // large: a whole number past int64's

  Json() = default;
  explicit Json(bool value) : kind_(Kind::boolean), whole_(value ? 1 : 0) {}
  explicit Json(int64_t value) : kind_(Kind::whole), whole_(value) {}
  explicit Json(uint64_t value);
  explicit Json(double value) : kind_(Kind::real), real_(value) {}
  Json(double value, std::string written)
      : kind_(Kind::real), real_(value), text_(std::move(written)) {}  // dump() has it as it was written
  explicit Json(std::string value) : kind_(Kind::text), text_(std::move(value)) {}
  static Json empty(Kind list_or_object);
  Json(Json&&) noexcept = default;
  Json& operator=(Json&&) noexcept = default;
  Json(const Json&) = delete;
  Json& operator=(const Json&) = delete;
  ~Json() = default;

  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return kind_ == Kind::whole || kind_ == Kind::large || kind_ == Kind::real; }

  // Ask first: each is meant for its kind.
  bool boolean() const { return whole_ != 0; }
  int64_t whole() const { return whole_; }
  double number() const;
  /// A real one too, where it is whole and exact (8.0, 1e3): in some languages each number is real. Nothing: not a whole number of 64 bits.
  std::optional<int64_t> as_whole() const;
  const std::string& text() const { return text_; }
  const std::vector<Json>& list() const { return list_; }
  const Members& members() const { return members_; }  // in the order in which they were written
  const Json* find(std::string_view key) const;        // null: not there

  Json& append(Json item);
  Json& append(std::string key, Json value);

  std::string dump() const;

 private:
  void dump_to(std::string& out) const;

  Kind kind_ = Kind::null;
  int64_t whole_ = 0;  // the bits of a large one
  double real_ = 0;
  std::string text_;
  std::vector<Json> list_;
  Members members_;
};

/// Throws invalid_argument: "<what>: line 3, column 7: ...". A key given twice is refused: of two values one would be dropped silently.
Json parse_json(std::string_view text, std::string_view what);

/// As parse_json(), of what a caller set: numbers that JSON does not have or that no double holds (NaN, Infinity, -inf, 1e400) are real
/// numbers too, and dump() shows them as they were written, so that whoever takes the value names its key and refuses it there.
Json parse_settings(std::string_view text, std::string_view what);

/// The shortest text that reads back as this number, and as a real one: 1.0, 1e-10.
std::string json_of(double value);

}  // namespace st
