/* One process with two copies of the library: the archive in this program, and the shared one that a plug-in might load. Each trains the
 * same net; they must give the same bits and not see each other's handles.
 * Usage: two_copies libscaletrain.so */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <scaletrain/scaletrain.h>
#include <stdio.h>
#include <string.h>

#define CALLS(use)                                                                                                                        \
  use(st_context_create) use(st_context_destroy) use(st_model_builtin) use(st_model_destroy) use(st_recipe_create) use(st_recipe_destroy) \
      use(st_trainer_create) use(st_trainer_destroy) use(st_trainer_step) use(st_trainer_digest) use(st_live_handles) use(st_last_error)

#define MEMBER(name) __typeof__(&name) name;
struct copy {
  CALLS(MEMBER)
};

struct run {
  st_context* context;
  st_model* model;
  st_recipe* recipe;
  st_trainer* trainer;
  char digest[64];
};

static int failed(const char* what) {
  fprintf(stderr, "two_copies: %s\n", what);
  return 1;
}

static int train(const struct copy* copy, struct run* run) {
  static float x[16], y[16];
  const int64_t dims[] = {16, 1};
  const st_named_view batch[] = {{"x", {.dtype = ST_F32, .rank = 2, .dims = dims, .data = x, .bytes = sizeof x}},
                                 {"y", {.dtype = ST_F32, .rank = 2, .dims = dims, .data = y, .bytes = sizeof y}}};
  for (int i = 0; i < 16; ++i) x[i] = (float)i / 16, y[i] = x[i] * x[i];
  if (copy->st_context_create(NULL, &run->context) != ST_OK) return failed(copy->st_last_error());
  if (copy->st_model_builtin(run->context, "mlp", NULL, 7, &run->model) != ST_OK) return failed(copy->st_last_error());
  if (copy->st_recipe_create("{\"batch\": 16}", &run->recipe) != ST_OK) return failed(copy->st_last_error());
  if (copy->st_trainer_create(run->model, run->recipe, NULL, &run->trainer) != ST_OK) return failed(copy->st_last_error());
  for (int step = 0; step < 10; ++step)
    if (copy->st_trainer_step(run->trainer, 2, batch, NULL) != ST_OK) return failed(copy->st_last_error());
  const char* digest = "";
  if (copy->st_trainer_digest(run->trainer, &digest) != ST_OK) return failed(copy->st_last_error());
  snprintf(run->digest, sizeof run->digest, "%s", digest);
  return 0;
}

static void end(const struct copy* copy, struct run* run) {
  copy->st_trainer_destroy(run->trainer);
  copy->st_recipe_destroy(run->recipe);
  copy->st_model_destroy(run->model);
  copy->st_context_destroy(run->context);
}

static int64_t live(const struct copy* copy) {
  int64_t count = -1;
  copy->st_live_handles(NULL, &count);
  return count;
}

int main(int argc, char** argv) {
  if (argc != 2) return failed("usage: two_copies libscaletrain.so");
  if (dlsym(RTLD_DEFAULT, "st_context_create") != NULL) return failed("the archive's symbols leave the program");

#define OWN(name) name,
  const struct copy own = {CALLS(OWN)};
  struct copy loaded;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL); /* global: the most intrusive way to load a copy */
  if (library == NULL) return failed(dlerror());
#define LOOK_UP(name)                            \
  *(void**)&loaded.name = dlsym(library, #name); \
  if (loaded.name == NULL || loaded.name == own.name) return failed(#name " is not the loaded copy's own");
  CALLS(LOOK_UP)

  struct run first, second;
  if (train(&own, &first) != 0) return 1;
  if (live(&own) != 4 || live(&loaded) != 0) return failed("one copy's handles are seen by the other");
  if (train(&loaded, &second) != 0) return 1;
  if (strcmp(first.digest, second.digest) != 0) return failed("the copies make different numbers");
  end(&own, &first);
  if (live(&own) != 0 || live(&loaded) != 4) return failed("one copy's handles are ended by the other");
  end(&loaded, &second);
  if (live(&loaded) != 0) return failed("the loaded copy keeps handles");
  printf("both made %s\n", first.digest);
  return 0;
}
