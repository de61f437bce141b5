#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_set>

#include "base/error.h"
#include "base/json_line.h"
#include "base/lower_case.h"
#include "base/plain_locale.h"

namespace st {
namespace {

using Library = nlohmann::json;

constexpr size_t kMaxDepth = 256;  // bounds the destructor's recursion for hostile files

/// nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while ..." without the parts that we add.
std::string_view reason_of(std::string_view message) {
  if (const auto place = message.find("parse error"); place != std::string_view::npos)
    if (const auto colon = message.find(": ", place); colon != std::string_view::npos) return message.substr(colon + 2);
  return message;
}

[[noreturn]] void fail_at(std::string_view whole, std::string_view what, size_t byte, std::string_view reason) {
  const auto before = whole.substr(0, std::min(byte, whole.size()));
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto newline = before.rfind('\n');
  const size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1);
  Error error(Code::invalid_argument, text(what, ": line ", line, ", column ", std::max<size_t>(column, 1), ": ", reason));
  error.place.offset = static_cast<int64_t>(byte);
  throw error;
}

/// A number that nlohmann's parser would refuse.
struct OddNumber {
  size_t ordinal;  // among the values that are not strings, lists or objects
  double value;
  std::string written;
};

std::optional<double> odd_value(std::string_view token) {
  const bool is_negative = token.starts_with('-');
  const std::string word = lower_case(token.substr(is_negative ? 1 : 0));
  if (word == "nan") return std::nan("");
  double read = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), read);
  const bool overflows = error == std::errc::result_out_of_range && end == word.data() + word.size() && [&] {
    const PlainLocale plain;
    return std::strtod(word.c_str(), nullptr) == HUGE_VAL;  // 0: underflow, which the parser accepts
  }();
  if (word != "inf" && word != "infinity" && !overflows) return std::nullopt;
  return is_negative ? -HUGE_VAL : HUGE_VAL;
}

/// Replaces such numbers by 0 and returns them. The text keeps its length.
std::vector<OddNumber> take_odd_numbers(std::string& whole) {
  constexpr std::string_view kToken = "+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::vector<OddNumber> odd;
  for (size_t at = 0, ordinal = 0; at < whole.size();) {
    if (whole[at] == '"') {
      for (++at; at < whole.size() && whole[at] != '"'; ++at)
        if (whole[at] == '\\') ++at;
      ++at;
      continue;
    }
    const size_t end = std::min(whole.find_first_not_of(kToken, at), whole.size());
    if (end > at) {
      const std::string token = whole.substr(at, end - at);
      if (const auto value = odd_value(token)) {
        odd.push_back({ordinal, *value, token});
        whole.replace(at, token.size(), "0" + std::string(token.size() - 1, ' '));
      }
      ++ordinal;
    }
    at = std::max(end, at + 1);
  }
  return odd;
}

/// Builds the value from the parser's events.
class TreeEvents : public nlohmann::json_sax<Library> {
 public:
  TreeEvents(std::string_view whole, std::string_view what, std::span<const OddNumber> odd = {}) : whole_(whole), what_(what), odd_(odd) {}

  Json root;

  bool null() override { return take_bare(Json()); }
  bool boolean(bool value) override { return take_bare(Json(value)); }
  bool number_integer(int64_t value) override { return take_bare(Json(value)); }
  bool number_unsigned(uint64_t value) override { return take_bare(Json(value)); }
  bool number_float(double value, const std::string& token) override {
    const bool is_integer = token.find_first_not_of("-0123456789") == std::string::npos;  // past 64 bits
    return take_bare(is_integer ? Json(value, token) : Json(value));
  }
  bool string(std::string& value) override { return take(Json(std::move(value))); }
  bool binary(Library::binary_t&) override { return false; }  // not in JSON text
  bool start_array(size_t) override { return open(Json::Kind::list); }
  bool end_array() override { return close(); }
  bool start_object(size_t) override { return open(Json::Kind::object); }
  bool end_object() override { return close(); }

  bool key(std::string& value) override {
    Level& level = open_.back();
    check(level.keys.insert(value).second, what_, ": the key \"", value, "\" is given twice in one object");
    level.key = std::move(value);
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    if (dynamic_cast<const Library::parse_error*>(&error) != nullptr) fail_at(whole_, what_, byte, reason_of(error.what()));
    fail_at(whole_, what_, byte, "a number that does not fit 64 bits");
  }

 private:
  struct Level {  // a list or an object that is open
    Json* value;  // stable: its parent gets no other member until this is closed
    std::string key;
    std::unordered_set<std::string> keys;
  };

  Json& put(Json value) {
    if (open_.empty()) return root = std::move(value);
    Level& level = open_.back();
    return level.value->is(Json::Kind::list) ? level.value->append(std::move(value))
                                             : level.value->append(std::move(level.key), std::move(value));
  }
  bool take(Json value) {
    put(std::move(value));
    return true;
  }
  bool take_bare(Json value) {
    const bool is_odd = !odd_.empty() && odd_.front().ordinal == bare_++;
    if (!is_odd) return take(std::move(value));
    take(Json(odd_.front().value, odd_.front().written));
    odd_ = odd_.subspan(1);
    return true;
  }
  bool open(Json::Kind kind) {
    check(open_.size() < kMaxDepth, what_, ": nested deeper than ", kMaxDepth);
    open_.push_back({&put(Json::empty(kind)), {}, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view whole_, what_;
  std::vector<Level> open_;
  std::span<const OddNumber> odd_;  // those not reached yet
  size_t bare_ = 0;                 // values so far that are not strings, lists or objects
};

}  // namespace

Json::Json(uint64_t value) : kind_(value > INT64_MAX ? Kind::large : Kind::whole), whole_(static_cast<int64_t>(value)) {}

Json Json::empty(Kind list_or_object) {
  Json made;
  made.kind_ = list_or_object;
  return made;
}

double Json::number() const {
  if (kind_ == Kind::real) return real_;
  return kind_ == Kind::large ? static_cast<double>(static_cast<uint64_t>(whole_)) : static_cast<double>(whole_);
}

std::optional<int64_t> Json::as_whole() const {
  if (kind_ == Kind::whole) return whole_;
  constexpr double kExact = 0x1p53;
  const bool is_exact = kind_ == Kind::real && real_ >= -kExact && real_ <= kExact && real_ == std::floor(real_);
  return is_exact ? std::optional(static_cast<int64_t>(real_)) : std::nullopt;
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members_)
    if (name == key) return &value;
  return nullptr;
}

Json& Json::append(Json item) { return list_.emplace_back(std::move(item)); }

Json& Json::append(std::string key, Json value) { return members_.emplace_back(std::move(key), std::move(value)).second; }

std::string Json::dump() const {
  std::string out;
  dump_to(out);
  return out;
}

void Json::dump_to(std::string& out) const {
  const char* comma = "";
  switch (kind_) {
    case Kind::null:
      out += "null";
      break;
    case Kind::boolean:
      out += boolean() ? "true" : "false";
      break;
    case Kind::whole:
      out += std::to_string(whole_);
      break;
    case Kind::large:
      out += std::to_string(static_cast<uint64_t>(whole_));
      break;
    case Kind::real:
      out += text_.empty() ? json_of(real_) : text_;
      break;
    case Kind::text:
      append_json_string(out, text_);
      break;
    case Kind::list:
      out += '[';
      for (const Json& item : list_) {
        out += std::exchange(comma, ",");
        item.dump_to(out);
      }
      out += ']';
      break;
    case Kind::object:
      out += '{';
      for (const auto& [key, value] : members_) {
        out += std::exchange(comma, ",");
        append_json_string(out, key);
        out += ':';
        value.dump_to(out);
      }
      out += '}';
  }
}

Json parse_json(std::string_view whole, std::string_view what) {
  TreeEvents events(whole, what);
  Library::sax_parse(whole.begin(), whole.end(), &events);
  return std::move(events.root);
}

Json parse_settings(std::string_view whole, std::string_view what) {
  std::string taken(whole);
  const std::vector<OddNumber> odd = take_odd_numbers(taken);
  TreeEvents events(taken, what, odd);
  Library::sax_parse(taken.begin(), taken.end(), &events);
  return std::move(events.root);
}

std::string json_of(double value) { return Library(value).dump(); }

}  // namespace st
