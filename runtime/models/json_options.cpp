#include "models/json_options.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace st {
namespace {

int64_t whole_number(std::string_view what, const Json& value) {
  const auto whole = value.as_whole();
  check(whole.has_value(), what, " must be a whole number, got ", value.dump());
  return *whole;
}

void take(const std::string& what, const Json& value, bool* target) {
  check(value.is(Json::Kind::boolean), what, " must be true or false, got ", value.dump());
  *target = value.boolean();
}

void take(const std::string& what, const Json& value, int64_t* target) { *target = whole_number(what, value); }

void take(const std::string& what, const Json& value, double* target) {
  check(value.is_number() && std::isfinite(value.number()), what, " must be a finite number, got ", value.dump());
  *target = value.number();
}

void take(const std::string& what, const Json& value, std::string* target) {
  check(value.is(Json::Kind::text), what, " must be text, got ", value.dump());
  *target = value.text();
}

void take(const std::string& what, const Json& value, std::vector<int64_t>* target) {
  check(value.is(Json::Kind::list), what, " must be a list of whole numbers, got ", value.dump());
  target->clear();
  for (const Json& item : value.list()) target->push_back(whole_number(what, item));
}

}  // namespace

void read_options(std::string_view what, std::string_view json, const std::vector<Option>& options) {
  if (json.empty()) return;
  const Json object = parse_settings(json, text(what, " options"));
  check(object.is(Json::Kind::object), what, ": options must be a JSON object, got ", json);
  std::vector<std::string> names;
  for (const Option& option : options) names.push_back(option.name);
  for (const auto& [key, value] : object.members()) {
    if (std::ranges::find(names, key) == names.end())
      fail(Code::invalid_argument, text(what, ": option \"", key, "\" is unknown", suggestion(key, names)));
    read_option(what, key, value, options);
  }
}

void read_option(std::string_view what, std::string_view name, const Json& value, const std::vector<Option>& options) {
  const Option& option = *std::ranges::find(options, name, &Option::name);
  std::visit([&](auto* target) { take(text(what, ": ", name), value, target); }, option.target);
}

void check_word(std::string_view what, std::string_view key, std::string_view word, const std::vector<std::string>& known) {
  if (std::ranges::find(known, word) == known.end())
    fail(Code::invalid_argument, text(what, ": ", key, " \"", word, "\" is unknown", suggestion(word, known)));
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return (near.empty() ? "; there are: " : "; did you mean " + near + "? There are: ") + listed(known);
}

}  // namespace st
