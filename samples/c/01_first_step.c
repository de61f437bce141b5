/* A first training step: a two-layer net, built op by op, learns y = sin x from arrays of this program.
 * Build: cc 01_first_step.c -lscaletrain -lm */
#include <math.h>
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

enum { ROWS = 64, WIDTH = 32, STEPS = 400 };

/* y = x w + b. A failed call gives value 0, which propagates the error to st_model_create: no check is needed here. */
static st_value linear(st_graph* graph, const char* name, st_value x, int64_t in, int64_t out) {
  const int64_t shape[] = {in, out};
  st_value w = 0, b = 0, xw = 0, y = 0;
  st_graph_scope(graph, name);
  st_graph_parameter(graph, "weight", 2, shape, ST_INIT_XAVIER, 1.0, &w);
  st_graph_parameter(graph, "bias", 1, shape + 1, ST_INIT_ZEROS, 0.0, &b);
  st_graph_op(graph, "matmul", 2, (const st_value[]){x, w}, NULL, 1, &xw);
  st_graph_op(graph, "add", 2, (const st_value[]){xw, b}, NULL, 1, &y);
  st_graph_scope_end(graph);
  return y;
}

int main(int argc, char** argv) {
  const int64_t column[] = {ST_BATCH, 1}, rows[] = {ROWS, 1};
  float x[ROWS], y[ROWS];
  for (int i = 0; i < ROWS; ++i) y[i] = sinf(x[i] = -3.0f + 6.0f * (float)i / (ROWS - 1));

  st_context* context = NULL;
  st_context_options options;
  st_graph* graph = NULL;
  CHECK(st_require(ST_VERSION_MAJOR, ST_VERSION_MINOR));
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(st_graph_create(context, &graph));

  st_value input = 0, target = 0, hidden = 0, loss[2] = {0, 0}; /* mse gives a sum and a count: the loss is the mean */
  st_graph_input(graph, "x", ST_F32, 2, column, &input);
  st_graph_input(graph, "y", ST_F32, 2, column, &target);
  hidden = linear(graph, "first", input, 1, WIDTH);
  st_graph_op(graph, "gelu", 1, &hidden, NULL, 1, &hidden);
  const st_value prediction = linear(graph, "second", hidden, WIDTH, 1);
  st_graph_op(graph, "mse", 2, (const st_value[]){prediction, target}, NULL, 2, loss);
  st_graph_loss(graph, loss[0]);

  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  CHECK(st_model_create(graph, 1, &model)); /* checks all of the graph's calls */
  CHECK(st_recipe_create("{\"batch\": 64, \"lr\": 0.01, \"weight_decay\": 0}", &recipe));
  CHECK(st_trainer_create(model, recipe, NULL, &trainer));

  const st_named_view batch[] = {{"x", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = x, .bytes = sizeof x}},
                                 {"y", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = y, .bytes = sizeof y}}};
  st_step_report report;
  CHECK(st_step_report_init(&report, sizeof report));
  for (int step = 0; step < STEPS; ++step) {
    CHECK(st_trainer_step(trainer, 2, batch, &report));
    if (report.step % 100 == 0 || report.step == 1) printf("step %3d  loss %.5f\n", (int)report.step, report.loss);
  }
  const int learned = report.loss < 0.01;
  printf("%s\n", learned ? "it learned the sine" : "it did not learn the sine");

  st_trainer_destroy(trainer); /* any order is allowed: objects keep what they need */
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  st_graph_destroy(graph);
  st_context_destroy(context);
  return learned ? 0 : 1;
}
