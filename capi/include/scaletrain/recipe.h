/* A recipe: how to train. Keys, defaults and ranges: st_recipe_keys, or runtime/train/recipe.def. */
#ifndef SCALETRAIN_RECIPE_H
#define SCALETRAIN_RECIPE_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_recipe st_recipe;

/* json: an object of keys, or NULL. An unknown key is refused and the nearest named. */
ST_API st_status st_recipe_create(const char* json, st_recipe** recipe);
ST_API st_status st_recipe_destroy(st_recipe* recipe);

/* json_value: "12", "\"adamw\"". */
ST_API st_status st_recipe_set(st_recipe* recipe, const char* key, const char* json_value);
/* Both texts are owned by the recipe until its next call. */
ST_API st_status st_recipe_get(st_recipe* recipe, const char* key, const char** json_value);
ST_API st_status st_recipe_json(st_recipe* recipe, const char** json);

/* [{"name":"lr","type":"real","default":0.001,"allowed":"[0,inf)","help":"..."}]; valid for ever. */
ST_API st_status st_recipe_keys(const char** json);

ST_END
#endif
