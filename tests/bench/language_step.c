/* One language's side of language_steps.py, here C: trains a small GPT on its own arrays. Reads a number of steps per line, runs them and
   prints the nanoseconds that they took. The twins in other languages run the same steps. */
#include <inttypes.h>
#include <scaletrain/scaletrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 8, CONTEXT = 32 };

static void check(st_status status) {
  if (status == ST_OK) return;
  fprintf(stderr, "%s\n", st_last_error());
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

int main(void) {
  static int32_t tokens[ROWS * CONTEXT], targets[ROWS * CONTEXT];
  static const int64_t dims[2] = {ROWS, CONTEXT};
  st_context* context = NULL;
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  st_step_report report;
  st_context_options options;
  int steps;
  for (int i = 0; i < ROWS * CONTEXT; ++i) {
    tokens[i] = i * 7 % 256;
    targets[i] = (i + 1) * 7 % 256;
  }
  const st_named_view batch[2] = {{"tokens", {ST_I32, 2, dims, NULL, tokens, sizeof tokens}},
                                  {"targets", {ST_I32, 2, dims, NULL, targets, sizeof targets}}};
  check(st_step_report_init(&report, sizeof report));
  check(st_context_options_init(&options, sizeof options));
  options.threads = 1;
  check(st_context_create(&options, &context));
  check(st_model_builtin(context, "gpt", "{\"layers\":2,\"width\":64,\"heads\":2,\"context\":32}", 1, &model));
  check(st_recipe_create("{\"batch\":8}", &recipe));
  check(st_trainer_create(model, recipe, NULL, &trainer));
  while (scanf("%d", &steps) == 1) {
    const int64_t begin = now();
    for (int i = 0; i < steps; ++i) check(st_trainer_step(trainer, 2, batch, &report));
    printf("%" PRId64 "\n", now() - begin);
    fflush(stdout);
  }
  check(st_trainer_destroy(trainer));
  check(st_recipe_destroy(recipe));
  check(st_model_destroy(model));
  check(st_context_destroy(context));
  return 0;
}
