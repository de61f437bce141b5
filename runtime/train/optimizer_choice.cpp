#include "train/optimizer_choice.h"

#include <charconv>

#include "base/error.h"

namespace st {
namespace {

/// Of the recipe's JSON, whatever the host's locale is.
double real_of(const std::string& json) {
  double value = 0;
  std::from_chars(json.data(), json.data() + json.size(), value);
  return value;
}

/// The op's attributes that the recipe has keys for.
Attrs attrs_from(const Recipe& recipe, Op op) {
  Attrs attrs;
  for (const OpAttr& attr : info_of(op).attrs)
    for (const RecipeKey& key : recipe_keys())
      if (key.name == attr.name) attrs.set(attr.name, real_of(recipe.get(key.name)));
  return attrs;
}

}  // namespace

OptimizerChoice optimizer_choice(const Recipe& recipe) {
#define ST_OPTIMIZER(name, op, moments, help) \
  if (recipe.optimizer == #name) return {Op::op, attrs_from(recipe, Op::op), words_of(moments)};
#include "ir/optimizers.def"
#undef ST_OPTIMIZER
  fail(Code::internal, text("recipe: optimizer \"", recipe.optimizer, "\" has no row in optimizers.def"));
}

}  // namespace st
