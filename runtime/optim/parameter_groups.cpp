#include "optim/parameter_groups.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/glob.h"
#include "base/json_line.h"
#include "base/text.h"
#include "optim/choose_optimizer.h"

namespace st {
namespace {

double scale_of(const Json& value, const std::string& key) {
  check(value.is_number() && value.number() >= 0 && std::isfinite(value.number()), "parameter groups: ", key,
        " must be a number in [0, inf), got ", value.dump());
  return value.number();
}

const std::string& text_of(const Json& value, const std::string& key) {
  check(value.is(Json::Kind::text) && !value.text().empty(), "parameter groups: ", key, " must be a non-empty string, got ", value.dump());
  return value.text();
}

void take(ParameterGroup& group, const std::string& key, const Json& value) {
  if (key == "pattern") {
    group.pattern = text_of(value, key);
  } else if (key == "lr_scale") {
    group.lr_scale = scale_of(value, key);
  } else if (key == "weight_decay_scale") {
    group.weight_decay_scale = scale_of(value, key);
  } else if (key == "clip") {
    group.clip = scale_of(value, key);
  } else if (key == "frozen") {
    check(value.is(Json::Kind::boolean), "parameter groups: frozen must be true or false, got ", value.dump());
    group.frozen = value.boolean();
  } else if (key == "optimizer") {
    group.optimizer = text_of(value, key);
    check_optimizer_name(group.optimizer);
  } else {
    const std::array<std::string, 6> keys = {"pattern", "lr_scale", "weight_decay_scale", "clip", "frozen", "optimizer"};
    fail(Code::invalid_argument, text("parameter groups: unknown key \"", key, "\"", way_out(key, keys, text("there are ", listed(keys)))));
  }
}

}  // namespace

ParameterGroups::ParameterGroups(const Json& list) {
  check(list.is(Json::Kind::list), "parameter groups: must be a list of objects, got ", list.dump());
  for (const Json& item : list.list()) {
    check(item.is(Json::Kind::object), "parameter groups: every entry must be an object, got ", item.dump());
    ParameterGroup group;
    for (const auto& [key, value] : item.members()) take(group, key, value);
    check(!group.pattern.empty(), "parameter groups: a group has no pattern: ", item.dump());
    groups_.push_back(group);
  }
}

int ParameterGroups::index_of(std::string_view parameter) const {
  const auto fits = [&](const ParameterGroup& group) { return matches_glob(group.pattern, parameter); };
  const auto found = std::ranges::find_if(groups_, fits);
  return found == groups_.end() ? -1 : static_cast<int>(found - groups_.begin());
}

ParameterGroup ParameterGroups::of(std::string_view parameter) const {
  const int index = index_of(parameter);
  return index < 0 ? ParameterGroup{} : groups_[static_cast<size_t>(index)];
}

void ParameterGroups::check_against(std::span<const std::string> parameters) const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const std::string& pattern = groups_[i].pattern;
    const auto fits = [&](const std::string& name) { return matches_glob(pattern, name); };
    const auto is_in_it = [&](const std::string& name) { return index_of(name) == static_cast<int>(i); };
    if (std::ranges::any_of(parameters, is_in_it)) continue;
    const auto first = std::ranges::find_if(parameters, fits);
    check(first != parameters.end(), "parameter groups: no parameter matches the pattern \"", pattern, "\"; the parameters are ",
          listed(parameters));
    fail(Code::invalid_argument,
         text("parameter groups: every parameter that matches the pattern \"", pattern, "\" is already in an earlier group, such as ",
              *first, " in the group of \"", of(*first).pattern, "\"; move this group before that one or remove it"));
  }
}

std::string ParameterGroups::json() const {
  std::string out = "[";
  for (const ParameterGroup& group : groups_) {
    JsonLine object;
    object.add("pattern", group.pattern).add("lr_scale", group.lr_scale).add("weight_decay_scale", group.weight_decay_scale);
    if (group.clip) object.add("clip", *group.clip);
    object.add("frozen", group.frozen);
    if (!group.optimizer.empty()) object.add("optimizer", group.optimizer);
    out += (out.size() > 1 ? "," : "") + object.text();
  }
  return out + "]";
}

}  // namespace st
