// A recipe.
#pragma once

#include <scaletrain/scaletrain.h>

#include "object_handles.h"
#include "recipe/recipe.h"

namespace st::capi {

struct RecipeObject final : Object {
  Recipe recipe;
};

ST_HANDLE(st_recipe, recipe, RecipeObject)

}  // namespace st::capi
