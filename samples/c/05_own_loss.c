/* An own loss, computed by the host between forward and backward: missing stock costs nine times as much as left-over stock, so the net
 * learns the order that is sufficient on 90 % of the days. */
#include <scaletrain/scaletrain.h>
#include <stdio.h>
#include <string.h>

#define CHECK(call)                                          \
  do {                                                       \
    if ((call) != ST_OK) {                                   \
      fprintf(stderr, "%s\n  %s\n", #call, st_last_error()); \
      return 1;                                              \
    }                                                        \
  } while (0)

enum { ROWS = 64 };

/* Demand is 2 x + 1 plus a random number between 0 and 1. */
static void some_days(float* x, float* sold) {
  static unsigned state = 1;
  for (int i = 0; i < ROWS; ++i) {
    x[i] = (float)((state = state * 1664525u + 1013904223u) >> 8) / (1 << 24);
    sold[i] = 2 * x[i] + 1 + (float)((state = state * 1664525u + 1013904223u) >> 8) / (1 << 24);
  }
}

/* The mean cost of the orders, and its gradient for each of them. */
static double cost_of(const float* order, const float* sold, float* gradient) {
  double sum = 0;
  for (int i = 0; i < ROWS; ++i) {
    const double missing = (double)sold[i] - order[i];
    sum += missing > 0 ? 0.9 * missing : -0.1 * missing;
    gradient[i] = (missing > 0 ? -0.9F : 0.1F) / ROWS; /* the library does not divide */
  }
  return sum / ROWS;
}

int main(int argc, char** argv) {
  st_context* context = NULL;
  st_context_options options;
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(st_model_builtin(context, "mlp", "{\"inputs\": 1, \"hidden\": [32], \"outputs\": 1}", 1, &model));
  CHECK(st_recipe_create("{\"batch\": 64, \"lr\": 0.01, \"warmup\": 0, \"weight_decay\": 0}", &recipe));
  CHECK(st_trainer_create(model, recipe, NULL, &trainer));

  float x[ROWS], sold[ROWS], gradient[ROWS];
  const int64_t dims[] = {ROWS, 1};
  /* no "y": only the graph's own loss reads it */
  const st_named_view batch = {"x", {.dtype = ST_F32, .rank = 2, .dims = dims, .data = x, .bytes = sizeof x}};
  const st_named_view by_order = {"prediction", {.dtype = ST_F32, .rank = 2, .dims = dims, .data = gradient, .bytes = sizeof gradient}};
  double first = 0, cost = 0;
  int enough = 0, days = 0;
  for (int step = 1; step <= 1000; ++step) {
    int64_t m = 0;
    const st_named_view* outputs = NULL; /* owned by the trainer until its next call */
    some_days(x, sold);
    CHECK(st_trainer_forward(trainer, 1, &batch, &m, &outputs));
    const float* order = (const float*)outputs[0].view.data;
    cost = cost_of(order, sold, gradient);
    for (int i = 0; i < ROWS && step > 900; ++i, ++days) enough += order[i] >= sold[i];
    CHECK(st_trainer_backward(trainer, 1, &by_order));
    CHECK(st_trainer_apply(trainer, NULL));
    if (step == 1) first = cost;
    if (step == 1 || step % 200 == 0) printf("step %4d  cost %.3f\n", step, cost);
  }
  const double share = (double)enough / days;
  printf("orders were enough on %.0f %% of the last days\n", 100 * share);

  st_trainer_destroy(trainer);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  st_context_destroy(context);
  return cost > 0.1 * first || share < 0.85 || share > 0.95; /* the best order costs 0.045 and is sufficient on 90 % of the days */
}
