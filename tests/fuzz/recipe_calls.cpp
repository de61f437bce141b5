// Recipes.
#include "api_calls.h"

#include "call_arguments.h"

namespace st::fuzz {
void recipe_use(World& world) {
  st_recipe* recipe = world.handle(world.recipes);
  const char* text = nullptr;
  const Calls calls = {
      [&] { CALL(st_recipe_set, recipe, key(world), setting(world)); },
      [&] { CALL(st_recipe_get, recipe, key(world), &text); },
      [&] { CALL(st_recipe_json, recipe, world.bytes.rarely() ? nullptr : &text); },
      [&] { CALL(st_recipe_keys, &text); },
      [&] {
        if (world.recipes.live.size() < 4)
          MAKE(st_recipe_create, recipes,
               world.bytes.rarely(3) ? json(world) : R"({"batch": 2, "accumulate": 2, "warmup": 0, "ema_decay": 0.5})");
      },
  };
  world.bytes.choose(5, calls);
}

}  // namespace st::fuzz
