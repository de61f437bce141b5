/* A host program in C that uses only the installed files: a small net learns y = sin x; exits with 0 if it did. */
#include <math.h>
#include <scaletrain/scaletrain.h>
#include <stdio.h>

#define CHECK(call)                                          \
  do {                                                       \
    if ((call) != ST_OK) {                                   \
      fprintf(stderr, "%s\n  %s\n", #call, st_last_error()); \
      return 1;                                              \
    }                                                        \
  } while (0)

enum { ROWS = 64, STEPS = 100 };

int main(void) {
  const int64_t dims[] = {ROWS, 1};
  float x[ROWS], y[ROWS];
  for (int i = 0; i < ROWS; ++i) y[i] = sinf(x[i] = -3.0f + 6.0f * (float)i / (ROWS - 1));

  st_context* context = NULL;
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  CHECK(st_require(ST_VERSION_MAJOR, ST_VERSION_MINOR));
  CHECK(st_context_create(NULL, &context));
  CHECK(st_model_builtin(context, "mlp", "{\"inputs\": 1, \"hidden\": [32], \"outputs\": 1}", 1, &model));
  CHECK(st_recipe_create("{\"batch\": 64, \"lr\": 0.01}", &recipe));
  CHECK(st_trainer_create(model, recipe, NULL, &trainer));

  const st_named_view batch[] = {{"x", {.dtype = ST_F32, .rank = 2, .dims = dims, .data = x, .bytes = sizeof x}},
                                 {"y", {.dtype = ST_F32, .rank = 2, .dims = dims, .data = y, .bytes = sizeof y}}};
  st_step_report report;
  CHECK(st_step_report_init(&report, sizeof report));
  double first = 0;
  for (int step = 0; step < STEPS; ++step) {
    CHECK(st_trainer_step(trainer, 2, batch, &report));
    if (step == 0) first = report.loss;
  }
  printf("loss %.4f, then %.4f\n", first, report.loss);

  st_trainer_destroy(trainer);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  st_context_destroy(context);
  return report.loss < first / 4 ? 0 : 1;
}
