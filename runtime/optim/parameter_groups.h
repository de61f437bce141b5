// Parameter groups: parameters by the patterns of their names, and what is special about them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace st {

struct ParameterGroup {
  std::string pattern = {};         // of names, base/glob.h; a parameter is of the first group that it fits
  double lr_scale = 1;              // of the learning rate
  double weight_decay_scale = 1;    // of weight_decay
  std::optional<double> clip = {};  // largest norm of this group's gradient, by itself; 0: no clipping; none: with all others
  bool frozen = false;              // not trained
  std::string optimizer = {};       // in place of the recipe's; "": that
};

class ParameterGroups {
 public:
  ParameterGroups() = default;
  /// [{"pattern": "*.bias", "weight_decay_scale": 0}, ...]; every key but the pattern may be missing. Throws invalid_argument: what is no
  /// such list, an unknown key (the nearest is named), a negative number.
  explicit ParameterGroups(const Json& list);

  const std::vector<ParameterGroup>& all() const { return groups_; }
  int index_of(std::string_view parameter) const;       // -1: in none
  ParameterGroup of(std::string_view parameter) const;  // the defaults where it is in none
  /// Throws invalid_argument for a pattern that no name fits, with the names there are, and for one whose names are all in earlier groups.
  void check_against(std::span<const std::string> parameters) const;
  std::string json() const;

 private:
  std::vector<ParameterGroup> groups_;
};

}  // namespace st
