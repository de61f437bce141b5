#include "op_attributes.h"

#include <optional>

#include "base/dtype.h"
#include "base/error.h"
#include "base/json.h"

namespace st::capi {
namespace {

AttrValue attr_of(const Json& value, const std::string& key) {
  if (value.is(Json::Kind::boolean)) return value.boolean();
  if (value.is(Json::Kind::whole)) return value.whole();
  if (value.is_number()) return value.number();
  if (value.is(Json::Kind::text)) return value.text();
  check(value.is(Json::Kind::list), "attribute ", key, " is ", value.dump(), "; it must be a bool, number, text or list of whole numbers");
  Ints ints;
  for (const Json& item : value.list()) {
    check(item.is(Json::Kind::whole), "attribute ", key, " holds ", item.dump(), "; it must hold whole numbers");
    ints.push_back(item.whole());
  }
  return ints;
}

bool bool_of(const st_attribute& given) {
  check(given.integer == 0 || given.integer == 1, "attribute ", given.name, " is a bool and must be 0 or 1, got ", given.integer);
  return given.integer == 1;
}

/// The name of an st_dtype as rows of ops.def take it.
std::string dtype_word(const st_attribute& given) {
  check(given.integer >= ST_F32 && given.integer <= ST_BOOL, "attribute ", given.name, " is ", given.integer,
        ", which is not a dtype; use 1 (ST_F32) to 8 (ST_BOOL)");
  return std::string(name_of(static_cast<DType>(given.integer)));
}

Ints ints_of(const st_attribute& given) {
  check(given.count >= 0, "attribute ", given.name, " has ", given.count, " integers");
  check(given.count == 0 || given.integers != nullptr, "attribute ", given.name, " has ", given.count, " integers, but integers is NULL");
  return given.count == 0 ? Ints{} : Ints(given.integers, given.integers + given.count);
}

/// nullopt: the default.
std::optional<AttrValue> attr_of(const st_attribute& given) {
  const bool is_dtype = std::string_view(given.name) == "dtype";
  switch (given.type) {
    case ST_ATTRIBUTE_BOOL:
      return bool_of(given);
    case ST_ATTRIBUTE_INT:
      if (!is_dtype) return given.integer;
      if (given.integer == 0) return std::nullopt;
      return dtype_word(given);
    case ST_ATTRIBUTE_REAL:
      return given.real;
    case ST_ATTRIBUTE_INTS:
      return ints_of(given);
    case ST_ATTRIBUTE_WORD:
      if (given.word == nullptr) return std::nullopt;
      return std::string(given.word);
  }
  fail(Code::invalid_argument, text("attribute ", given.name, " has type ", given.type, "; it must be 1 (bool) to 5 (word)"));
}

}  // namespace

Attrs attrs_of(const char* json) {
  Attrs attrs;
  if (json == nullptr || *json == '\0') return attrs;
  const Json object = parse_settings(json, "attributes");
  check(object.is(Json::Kind::object), "attributes must be a JSON object, got ", object.dump());
  for (const auto& [key, value] : object.members()) attrs.set(key, attr_of(value, key));
  return attrs;
}

Attrs attrs_of(int32_t count, const st_attribute* attributes) {
  check(count >= 0 && (count == 0 || attributes != nullptr), "attributes is NULL or their number ", count, " negative");
  Attrs attrs;
  for (int32_t i = 0; i < count; ++i) {
    const st_attribute& given = attributes[i];
    check(given.name != nullptr, "attribute ", i, " has no name");
    check(!attrs.has(given.name), "attribute ", given.name, " is given twice");
    if (auto value = attr_of(given)) attrs.set(given.name, std::move(*value));
  }
  return attrs;
}

}  // namespace st::capi
