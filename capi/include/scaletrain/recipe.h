/* A recipe: how to train. Keys, defaults and ranges: st_recipe_keys, or runtime/recipe/recipe.def. */
#ifndef SCALETRAIN_RECIPE_H
#define SCALETRAIN_RECIPE_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_recipe st_recipe;

/* json: an object of keys, or NULL. It may also be DeepSpeed's ds_config.json, recognised by its keys (train_batch_size, zero_optimization,
 * fp16 as an object ...): its meanings and defaults are those of https://www.deepspeed.ai/docs/config-json, converted to our keys by the
 * table in runtime/recipe/README.md. Settings without an effect here are logged (area "recipe") when a trainer is made.
 * - ST_INVALID_ARGUMENT: an unknown key (the nearest is named); a value outside its domain; keys that contradict each other, with the
 *   arithmetic; an lr_schedule without its length.
 * - ST_UNSUPPORTED: a DeepSpeed setting that would train differently here; the message says what to use. */
ST_API st_status st_recipe_create(const char* json, st_recipe** recipe);
ST_API st_status st_recipe_destroy(st_recipe* recipe);

/* json_value: "12", "\"adamw\"". NaN, Infinity and numbers beyond 64 bits are parsed, but no domain contains them: the error names key,
 * domain and value. */
ST_API st_status st_recipe_set(st_recipe* recipe, const char* key, const char* json_value);
/* Both texts: (O). */
ST_API st_status st_recipe_get(st_recipe* recipe, const char* key, const char** json_value);
ST_API st_status st_recipe_json(st_recipe* recipe, const char** json);

/* [{"name":"lr","type":"real","default":0.001,"allowed":"[0,inf)","help":"...","other_names":["learning_rate"]}]; never freed.
 * - type: text, integer, real, boolean or list.
 * - allowed, the key's domain: an interval of numbers; an interval and words, "[1,inf) auto"; the words of a text; or "", any value of the
 *   type.
 * - other_names: names in other systems. They are refused with an error that gives our name. */
ST_API st_status st_recipe_keys(const char** json);

ST_END
#endif
