#include "base/json.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"

namespace st {
namespace {

constexpr int kMaxDepth = 256;  // the parser of a hostile file must not recurse, nor its value's destructor, without end

/// nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while ..." without what we say ourselves.
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

}  // namespace

Json parse_json(std::string_view whole, std::string_view what) {
  std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    check(depth < kMaxDepth, what, ": nested deeper than ", kMaxDepth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      check(keys.back().insert(key).second, what, ": the key \"", key, "\" is given twice in one object");
    }
    return true;
  };
  try {
    return Json::parse(whole, watch);
  } catch (const Json::parse_error& error) {
    fail_at(whole, what, error.byte, reason_of(error.what()));
  } catch (const Json::exception& error) {  // a number out of range
    fail(Code::invalid_argument, text(what, ": ", error.what()));
  }
}

}  // namespace st
