// Parses JSON into a value; errors name the text and the place. To write JSON, see json_line.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace st {

/// A parsed value. Not nlohmann's, whose destructor allocates and ends the process when that fails.
class Json {
 public:
  using Members = std::vector<std::pair<std::string, Json>>;
  enum class Kind : uint8_t { null, boolean, whole, large, real, text, list, object };  // large: a whole number above INT64_MAX

  Json() = default;
  explicit Json(bool value) : kind_(Kind::boolean), whole_(value ? 1 : 0) {}
  explicit Json(int64_t value) : kind_(Kind::whole), whole_(value) {}
  explicit Json(uint64_t value);
  explicit Json(double value) : kind_(Kind::real), real_(value) {}
  Json(double value, std::string written)
      : kind_(Kind::real), real_(value), text_(std::move(written)) {}  // dump() writes it as it was read
  explicit Json(std::string value) : kind_(Kind::text), text_(std::move(value)) {}
  static Json empty(Kind list_or_object);
  Json(Json&&) noexcept = default;
  Json& operator=(Json&&) noexcept = default;
  Json(const Json&) = delete;
  Json& operator=(const Json&) = delete;
  ~Json() = default;

  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return kind_ == Kind::whole || kind_ == Kind::large || kind_ == Kind::real; }

  // Check the kind first: each accessor is valid for its own kind only.
  bool boolean() const { return whole_ != 0; }
  int64_t whole() const { return whole_; }
  double number() const;
  /// A real number too, if it is whole and exact (8.0, 1e3): in some languages every number is real. Nothing: not a 64-bit integer.
  std::optional<int64_t> as_whole() const;
  const std::string& text() const { return text_; }
  const std::vector<Json>& list() const { return list_; }
  const Members& members() const { return members_; }  // in their order in the text
  const Json* find(std::string_view key) const;        // null: no such key

  Json& append(Json item);
  Json& append(std::string key, Json value);

  std::string dump() const;

 private:
  void dump_to(std::string& out) const;

  Kind kind_ = Kind::null;
  int64_t whole_ = 0;  // for a large one: its bits
  double real_ = 0;
  std::string text_;
  std::vector<Json> list_;
  Members members_;
};

/// Throws invalid_argument: "<what>: line 3, column 7: ...". Refuses a duplicate key, because one of the values would be lost silently.
Json parse_json(std::string_view text, std::string_view what);

/// Like parse_json(), for a caller's settings. Also accepts numbers that JSON or a double cannot represent (NaN, Infinity, -inf, 1e400) as
/// real numbers. dump() writes them as they were read, so that the reader of a setting can refuse it by its key.
Json parse_settings(std::string_view text, std::string_view what);

/// The shortest text that reads back as this double and is a real number: 1.0, 1e-10.
std::string json_of(double value);

}  // namespace st
