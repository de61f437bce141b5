// Parameter groups: settings for the parameters whose names match a pattern.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace st {

struct ParameterGroup {
  std::string pattern = {};         // of names (base/glob.h); a parameter belongs to the first group whose pattern it matches
  double lr_scale = 1;              // factor on the learning rate
  double weight_decay_scale = 1;    // factor on weight_decay
  std::optional<double> clip = {};  // limit of this group's own gradient norm; 0: no clipping; unset: clipped with all others
  bool frozen = false;              // not trained
  std::string optimizer = {};       // replaces the recipe's; "": the recipe's
};

class ParameterGroups {
 public:
  ParameterGroups() = default;
  /// [{"pattern": "*.bias", "weight_decay_scale": 0}, ...]; only the pattern is required. Throws invalid_argument: not a list of objects,
  /// an unknown key (suggests the nearest), a negative number.
  explicit ParameterGroups(const Json& list);

  const std::vector<ParameterGroup>& all() const { return groups_; }
  int index_of(std::string_view parameter) const;       // -1: in no group
  ParameterGroup of(std::string_view parameter) const;  // the defaults if it is in no group
  /// Throws invalid_argument for a pattern that matches no name (lists the names), and for one whose names are all in earlier groups.
  void check_against(std::span<const std::string> parameters) const;
  std::string json() const;

 private:
  std::vector<ParameterGroup> groups_;
};

}  // namespace st
