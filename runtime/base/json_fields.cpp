#include "base/json_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace st {

JsonFields::JsonFields(const Json& object, std::string name, std::string_view writer)
    : object_(object), name_(std::move(name)), writer_(writer) {
  check(object.is(Json::Kind::object), name_, " must be a JSON object, got ", object.dump());
}

const Json& JsonFields::any(std::string_view key) {
  const Json* found = object_.find(key);
  check(found != nullptr, name_, ": ", key, " is missing; ", writer_);
  read_.push_back(key);
  return *found;
}

int64_t JsonFields::whole(std::string_view key, int64_t least, int64_t most) {
  const Json& value = any(key);
  const auto read = value.as_whole();
  check(read && *read >= least && *read <= most, name_, ": ", key, " must be a whole number in [", least, ", ", most, "], got ",
        value.dump());
  return *read;
}

double JsonFields::rate(std::string_view key) {
  const Json& value = any(key);
  check(value.is_number() && value.number() >= 0 && std::isfinite(value.number()), name_, ": ", key,
        " must be a number of at least 0 (0: unknown), got ", value.dump());
  return value.number();
}

bool JsonFields::flag(std::string_view key) {
  const Json& value = any(key);
  check(value.is(Json::Kind::boolean), name_, ": ", key, " must be true or false, got ", value.dump());
  return value.boolean();
}

std::string JsonFields::text(std::string_view key) {
  const Json& value = any(key);
  check(value.is(Json::Kind::text), name_, ": ", key, " must be a text, got ", value.dump());
  return value.text();
}

std::string JsonFields::one_of(std::string_view key, std::span<const std::string_view> allowed) {
  const Json& value = any(key);
  const std::vector<std::string> names(allowed.begin(), allowed.end());
  check(value.is(Json::Kind::text) && std::ranges::find(allowed, value.text()) != allowed.end(), name_, ": ", key, " must be one of ",
        listed(names), ", got ", value.dump(), way_out(value.text(), names));
  return value.text();
}

void JsonFields::done(int64_t version) const {
  for (const auto& [key, value] : object_.members())
    check(std::ranges::find(read_, key) != read_.end(), name_, ": version ", version, " has no ", key, "; remove it");
}

}  // namespace st
