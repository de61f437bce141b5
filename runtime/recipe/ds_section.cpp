#include "recipe/ds_section.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "recipe/ds_config.h"
#include "recipe/recipe.h"

namespace st {
namespace {

bool is_word(const Json& value, std::string_view word) { return value.is(Json::Kind::text) && value.text() == word; }

/// How people write a comment into JSON.
bool is_comment(std::string_view key) { return key.starts_with('_') || key.starts_with("//") || key.starts_with('#'); }

[[noreturn]] void fail_with(Code code, std::initializer_list<DsPart> parts) {
  std::string message = "ds_config: ";
  for (const DsPart& part : parts) part.append_to(message);
  fail(code, std::move(message));
}

}  // namespace

void DsRecipe::set(const char* key, std::string json) { keys.emplace_back(key, std::move(json)); }

void DsPart::append_to(std::string& message) const {
  if (is_number_ && number_ == std::floor(number_) && std::abs(number_) < 1e15)
    append_text(message, static_cast<int64_t>(number_));
  else if (is_number_)
    append_text(message, number_);
  else
    message += words_;
}

void ds_check(bool holds, std::initializer_list<DsPart> parts) {
  if (!holds) fail_with(Code::invalid_argument, parts);
}

void ds_require(bool holds, std::initializer_list<DsPart> parts) {
  if (!holds) fail_with(Code::unsupported, parts);
}

void refuse_ds_type(const char* section, const std::string& type, const std::string& near, const char* known) {
  const bool is_near = !near.empty();
  fail_with(Code::invalid_argument, {section, ".type \"", type, "\" is unknown; ", is_near ? "did you mean \"" : "use ",
                                     is_near ? near.c_str() : known, is_near ? "\"?" : ""});
}

DsSection::DsSection(std::string path, const Json* object) : path_(std::move(path)), object_(object) {
  if (object_ == nullptr) return;
  const std::string_view name = std::string_view(path_).substr(0, path_.empty() ? 0 : path_.size() - 1);
  ds_check(object_->is(Json::Kind::object), {name, " must be an object, {...}, got ", object_->dump()});
}

DsSection::~DsSection() = default;

const Json* DsSection::find(std::string_view key) {
  known_.emplace_back(key);
  const Json* value = object_ == nullptr ? nullptr : object_->find(key);
  return value == nullptr || value->is(Json::Kind::null) || is_word(*value, "auto") ? nullptr : value;
}

bool DsSection::is_auto(std::string_view key) const {
  const Json* value = object_ == nullptr ? nullptr : object_->find(key);
  return value != nullptr && is_word(*value, "auto");
}

std::optional<double> DsSection::number(std::string_view key, double least) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  ds_check(value->is_number(), {name_of(key), " must be a number, got ", value->dump()});
  ds_check(std::isfinite(value->number()) && value->number() >= least,
           {name_of(key), " must be at least ", least, ", got ", value->dump()});
  return value->number();
}

std::optional<int64_t> DsSection::whole(std::string_view key, int64_t least, int64_t most) {
  const std::optional<double> value = number(key, -HUGE_VAL);  // a real one too: 5e8 is how people write sizes
  if (!value) return std::nullopt;
  ds_check(*value == std::floor(*value) && *value >= static_cast<double>(least) && *value <= static_cast<double>(most),
           {name_of(key), " must be a whole number from ", least, " to ", most, ", got ", *value});
  return static_cast<int64_t>(*value);
}

std::optional<std::string> DsSection::word(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  ds_check(value->is(Json::Kind::text), {name_of(key), " must be a string, got ", value->dump()});
  return value->text();
}

bool DsSection::flag(std::string_view key, bool standard) {
  const Json* value = find(key);
  if (value == nullptr) return standard;
  ds_check(value->is(Json::Kind::boolean), {name_of(key), " must be true or false, got ", value->dump()});
  return value->boolean();
}

DsSection DsSection::section(std::string_view key) { return {name_of(key) + ".", find(key)}; }

void DsSection::skip(std::initializer_list<const char*> keys, std::vector<std::string>& there) {
  for (const char* key : keys) {
    known_.emplace_back(key);
    if (object_ != nullptr && object_->find(key) != nullptr) there.push_back(name_of(key));
  }
}

void DsSection::skip(std::initializer_list<const char*> keys) {
  std::vector<std::string> unlisted;
  skip(keys, unlisted);
}

void DsSection::skip_comments(std::vector<std::string>& there) const {
  if (object_ == nullptr) return;
  for (const auto& [key, value] : object_->members())
    if (is_comment(key)) there.push_back(name_of(key));
}

std::string DsSection::name_of(std::string_view key) const { return text(path_, key); }

void DsSection::finish() const {
  if (object_ == nullptr) return;
  for (const auto& [key, value] : object_->members()) {
    if (is_comment(key) || std::ranges::find(known_, key) != known_.end()) continue;
    const std::string name = name_of(key);
    const bool is_ours = path_.empty() && std::ranges::find(recipe_keys(), key, &RecipeKey::name) != recipe_keys().end();
    if (is_ours)
      fail_with(Code::invalid_argument,
                {"unknown key \"", name, "\"; a ds_config cannot hold recipe keys, give them as options or with st_recipe_set"});
    const std::string near = nearest(key, known_), meant = name_of(near);
    if (near.empty())
      fail_with(Code::invalid_argument, {"unknown key \"", name, "\"; runtime/recipe/README.md lists the supported DeepSpeed keys"});
    fail_with(Code::invalid_argument, {"unknown key \"", name, "\"; did you mean \"", meant, "\"?"});
  }
}

}  // namespace st
