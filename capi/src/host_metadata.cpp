#include "host_metadata.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_line.h"
#include "base/utf8.h"

namespace st::capi {

Metadata metadata_of(const char* json, const char* call) {
  Metadata made;
  if (json == nullptr) return made;
  const Json object = parse_json(json, text(call, ": metadata"));
  check(object.is(Json::Kind::object), call, ": metadata must be a JSON object of texts, numbers and booleans, got ", object.dump());
  for (const auto& [key, value] : object.members()) {
    check(value.is(Json::Kind::text) || value.is(Json::Kind::boolean) || value.is_number(), call, ": metadata's \"", key, "\" is ",
          value.dump(), "; give a text, a number or a boolean");
    made.emplace(key, value.is(Json::Kind::text) ? value.text() : value.dump());
  }
  return made;
}

std::string json_of(const Metadata& metadata) {
  JsonLine object;
  for (const auto& [key, value] : metadata) object.add(key, value);
  return object.text();
}

}  // namespace st::capi
