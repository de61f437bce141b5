/* Data parallel: the micro-batches of a step are distributed over ranks, here threads of this process. One recipe key sets their number;
 * losses and weights are those of one rank, bit by bit, for any number. */
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

enum { ROWS = 64, WIDTH = 32, STEPS = 100 };

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

/* The sine of 01_first_step. */
static st_status make_graph(st_context* context, st_graph** graph) {
  const int64_t column[] = {ST_BATCH, 1};
  st_value x = 0, y = 0, hidden = 0, loss[2] = {0, 0};
  const st_status status = st_graph_create(context, graph);
  if (status != ST_OK) return status;
  st_graph_input(*graph, "x", ST_F32, 2, column, &x);
  st_graph_input(*graph, "y", ST_F32, 2, column, &y);
  hidden = linear(*graph, "first", x, 1, WIDTH);
  st_graph_op(*graph, "gelu", 1, &hidden, NULL, 1, &hidden);
  const st_value prediction = linear(*graph, "second", hidden, WIDTH, 1);
  st_graph_op(*graph, "mse", 2, (const st_value[]){prediction, y}, NULL, 2, loss);
  return st_graph_loss(*graph, loss[0]);
}

/* state: 32 hex digits, a digest of all weights and moments. */
static int train(st_graph* graph, int ranks, const st_named_view* batch, char* state) {
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  char text[128];
  snprintf(text, sizeof text, "{\"batch\": 8, \"micro_batches\": 8, \"lr\": 0.01, \"weight_decay\": 0, \"ranks\": %d}", ranks);
  CHECK(st_model_create(graph, 1, &model));
  CHECK(st_recipe_create(text, &recipe));
  CHECK(st_trainer_create(model, recipe, NULL, &trainer));

  st_step_report report;
  CHECK(st_step_report_init(&report, sizeof report));
  for (int step = 0; step < STEPS; ++step) CHECK(st_trainer_step(trainer, 2, batch, &report)); /* the rows of all ranks */
  const char* hex = NULL;
  CHECK(st_trainer_digest(trainer, &hex));
  strcpy(state, hex);
  printf("%d rank%s  step %d  loss %.5f\n", ranks, ranks == 1 ? " " : "s", (int)report.step, report.loss);

  st_trainer_destroy(trainer);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  return 0;
}

int main(int argc, char** argv) {
  const int64_t rows[] = {ROWS, 1};
  float x[ROWS], y[ROWS];
  for (int i = 0; i < ROWS; ++i) y[i] = sinf(x[i] = -3.0f + 6.0f * (float)i / (ROWS - 1));
  const st_named_view batch[] = {{"x", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = x, .bytes = sizeof x}},
                                 {"y", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = y, .bytes = sizeof y}}};

  st_context* context = NULL;
  st_context_options options;
  st_graph* graph = NULL;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(make_graph(context, &graph));
  const int ranks[] = {1, 2, 3, 8};
  char first[64], state[64];
  int alike = 1;
  for (int i = 0; i < 4; ++i) {
    if (train(graph, ranks[i], batch, i == 0 ? first : state) != 0) return 1;
    if (i > 0 && strcmp(first, state) != 0) alike = 0;
  }
  printf("%s\n", alike ? "all have the same bits" : "they differ");

  st_graph_destroy(graph);
  st_context_destroy(context);
  return alike ? 0 : 1;
}
