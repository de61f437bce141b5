/* Plans before anything runs: a GPT of 10 B parameters on 8 ranks of a machine that is not here. The first recipe does not fit; the plan
 * lists changes of the recipe with their prices. The first one that fits is applied and planned. Then the library searches by itself. */
#include <scaletrain/scaletrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                          \
  do {                                                       \
    if ((call) != ST_OK) {                                   \
      fprintf(stderr, "%s\n  %s\n", #call, st_last_error()); \
      return 1;                                              \
    }                                                        \
  } while (0)

static const char kGpt[] = "{\"layers\": 12, \"width\": 8192, \"heads\": 64, \"context\": 1024, \"vocabulary\": 50304}";
static const char kRecipe[] = "{\"ranks\": 8, \"batch\": 16, \"precision\": \"fp16\", \"optimizer\": \"adam\"}";

/* The number of a key; the plan's own keys come before those of its fixes. */
static double number(const char* json, const char* key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char* at = strstr(json, quoted);
  return at ? strtod(at + strlen(quoted), NULL) : 0;
}

static int fits(const char* json) { return strstr(json, "\"fits\":true,\"wire_bytes\"") != NULL; }

static void print_plan(const char* name, const char* json) {
  const double total = number(json, "device_total") / 1e9, room = number(json, "device_memory") / 1e9;
  printf("%-14s %6.1f GB of %.1f, %.2f s a step: ", name, total, room, number(json, "step_seconds"));
  if (fits(json))
    printf("fits\n");
  else
    printf("does not fit, %.1f GB too much\n", total - room);
}

/* {"text":"zero 0 -> 3: ..","recipe":{"zero":3},"fits":true,..}: NULL if no change is enough. */
static const char* first_fix_that_fits(const char* json) {
  const char* at = strstr(json, "\"fixes\":[");
  while (at && (at = strstr(at, "{\"text\":\"")) != NULL) {
    const char* answer = strstr(at, "\"fits\":");
    if (answer && strncmp(answer, "\"fits\":true", 11) == 0) return at;
    at = answer;
  }
  return NULL;
}

/* Sets the keys of a fix's recipe. */
static int apply(st_recipe* recipe, const char* fix) {
  const char* at = strstr(fix, "\"recipe\":{") + 10;
  while (*at == '"' || *at == ',') {
    char key[64], value[64];
    int end = 0;
    if (sscanf(at, "%*[,\"]%63[^\"]\":%63[^,}]%n", key, value, &end) != 2) return 1;
    CHECK(st_recipe_set(recipe, key, value));
    at += end;
  }
  return 0;
}

int main(int argc, char** argv) {
  st_context* context = NULL;
  st_context_options options;
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_plan *first = NULL, *second = NULL, *best = NULL;
  const char *json = NULL, *planned = NULL, *found = NULL;
  CHECK(st_context_options_init(&options, sizeof options));
  options.late_parameters = 1; /* a plan does not read them, so they are never made */
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(st_model_builtin(context, "gpt", kGpt, 1, &model));
  CHECK(st_recipe_create(kRecipe, &recipe));

  CHECK(st_plan_create(model, recipe, "{\"machine\": \"a100-80g\"}", &first));
  CHECK(st_plan_json(first, &json));
  printf("%.1f B parameters; textbook: %.0f bytes each, %.1f GB a rank, %.1f GB with ZeRO-3\n",
         number(strstr(json, "\"textbook\":"), "parameters") / 1e9, number(json, "bytes_per_parameter"),
         number(json, "data_parallel") / 1e9, number(json, "zero_3") / 1e9);
  print_plan("first recipe", json);

  const char* fix = first_fix_that_fits(json);
  if (!fix) return 1;
  printf("%.*s\n", (int)strcspn(fix + 9, "\""), fix + 9);
  if (apply(recipe, fix) != 0) return 1;
  CHECK(st_plan_create(model, recipe, "{\"machine\": \"a100-80g\"}", &second));
  CHECK(st_plan_json(second, &planned));
  print_plan("with the fix", planned);

  CHECK(st_recipe_destroy(recipe));
  CHECK(st_recipe_create(kRecipe, &recipe));
  CHECK(st_plan_create(model, recipe, "{\"machine\": \"a100-80g\", \"auto\": true}", &best));
  CHECK(st_plan_json(best, &found));
  print_plan("searched", found);
  const char* changes = strstr(found, "\"found\":[{\"recipe\":");
  if (changes) printf("%.*s\n", (int)strcspn(changes + 19, "}") + 1, changes + 19);

  const int all_fit = !fits(json) && fits(planned) && fits(found);
  st_plan_destroy(best);
  st_plan_destroy(second);
  st_plan_destroy(first);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  st_context_destroy(context);
  return all_fit ? 0 : 1;
}
