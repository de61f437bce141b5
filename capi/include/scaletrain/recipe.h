/* A recipe: how to train. Keys, defaults and ranges: st_recipe_keys, or runtime/train/recipe.def. */
#ifndef SCALETRAIN_RECIPE_H
#define SCALETRAIN_RECIPE_H

#include <scaletrain/error.h>

ST_BEGIN

typedef struct st_recipe st_recipe;

/*
 * json: an object of keys, or NULL; or what stands in a ds_config.json of DeepSpeed's, known by its keys (train_batch_size,
 * zero_optimization, fp16 as an object ...), whose meanings and defaults are then https://www.deepspeed.ai/docs/config-json's and become
 * those of our keys: runtime/train/README.md has the table. What of it takes no effect here is logged (area "recipe") when a trainer is
 * made.
 * ST_INVALID_ARGUMENT: an unknown key, the nearest is named; a value that is not in its domain; keys that contradict each other, with
 * the arithmetic; a lr_schedule without its length. ST_UNSUPPORTED: of DeepSpeed's, what would train otherwise than it says, with what to
 * use.
 */
ST_API st_status st_recipe_create(const char* json, st_recipe** recipe);
ST_API st_status st_recipe_destroy(st_recipe* recipe);

/* json_value: "12", "\"adamw\"". NaN, Infinity and numbers past 64 bits may be written, as languages write them: no domain has them, and
 * the error names key, domain and value. */
ST_API st_status st_recipe_set(st_recipe* recipe, const char* key, const char* json_value);
/* Both texts are owned by the recipe until its next call. */
ST_API st_status st_recipe_get(st_recipe* recipe, const char* key, const char** json_value);
ST_API st_status st_recipe_json(st_recipe* recipe, const char** json);

/* [{"name":"lr","type":"real","default":0.001,"allowed":"[0,inf)","help":"...","other_names":["learning_rate"]}]; valid for ever. type:
 * text, integer, real, boolean or list. allowed is the key's domain: an interval of numbers, "[1,inf) auto" with the words that may stand
 * in place of one, the words of a text, or "", anything of the type. other_names: what other systems call it, which is refused with this
 * name. */
ST_API st_status st_recipe_keys(const char** json);

ST_END
#endif
