#include "models/activation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/json_options.h"

namespace st {

const Activation& activation_named(std::string_view what, std::string_view name) {
  static const std::array<Activation, 4> table = {{{"gelu", Op::gelu, std::sqrt(2.0)},
                                                   {"relu", Op::relu, std::sqrt(2.0)},
                                                   {"silu", Op::silu, std::sqrt(2.0)},
                                                   {"tanh", Op::tanh, 5.0 / 3}}};
  std::vector<std::string> names;
  for (const Activation& activation : table) names.push_back(activation.name);
  check_word(what, "activation", name, names);
  return *std::ranges::find(table, name, &Activation::name);
}

}  // namespace st
