/* Pipeline stages: layers in two stages, here threads of this process, and micro-batches that pass through them. With one micro-batch the
 * split is naive model parallelism: each stage waits while the other computes, half of the time. With eight under 1F1B a stage waits a
 * ninth of it, and ZB-V also fills most of that with gradients of weights. The bits are those of one stage, by every schedule. */
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

/* A layer in an outermost scope: a stage may begin with it. */
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

/* The sine of 01_first_step, by four layers. */
static st_status make_graph(st_context* context, st_graph** graph) {
  const int64_t column[] = {ST_BATCH, 1}, widths[] = {1, WIDTH, WIDTH, WIDTH, 1};
  const char* names[] = {"first", "second", "third", "fourth"};
  st_value x = 0, y = 0, loss[2] = {0, 0};
  const st_status status = st_graph_create(context, graph);
  if (status != ST_OK) return status;
  st_graph_input(*graph, "x", ST_F32, 2, column, &x);
  st_graph_input(*graph, "y", ST_F32, 2, column, &y);
  for (int i = 0; i < 4; ++i) {
    x = linear(*graph, names[i], x, widths[i], widths[i + 1]);
    if (i < 3) st_graph_op(*graph, "gelu", 1, &x, NULL, 1, &x);
  }
  st_graph_op(*graph, "mse", 2, (const st_value[]){x, y}, NULL, 2, loss);
  return st_graph_loss(*graph, loss[0]);
}

/* state: 32 hex digits, a digest of all weights and moments. */
static int train(st_graph* graph, const char* name, int stages, const char* schedule, int micro_batches, const st_named_view* batch,
                 char* state) {
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  char text[160];
  snprintf(text, sizeof text,
           "{\"batch\": %d, \"micro_batches\": %d, \"lr\": 0.01, \"weight_decay\": 0, \"stages\": %d, \"schedule\": \"%s\"}",
           ROWS / micro_batches, micro_batches, stages, schedule);
  CHECK(st_model_create(graph, 1, &model));
  CHECK(st_recipe_create(text, &recipe));
  CHECK(st_trainer_create(model, recipe, NULL, &trainer));

  st_step_report report;
  CHECK(st_step_report_init(&report, sizeof report));
  for (int step = 0; step < STEPS; ++step) CHECK(st_trainer_step(trainer, 2, batch, &report)); /* the host passes the rows once */
  const char* hex = NULL;
  CHECK(st_trainer_digest(trainer, &hex));
  strcpy(state, hex);
  printf("%-11s  %d micro-batches  step %d  loss %.5f\n", name, micro_batches, (int)report.step, report.loss);

  st_trainer_destroy(trainer);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  return 0;
}

int main(int argc, char** argv) {
  const char* schedule = argc > 1 && argv[1][0] != '-' ? argv[1] : "zb-v"; /* or gpipe, interleaved, zb-h1 */
  const int64_t rows[] = {ROWS, 1};
  float x[ROWS], y[ROWS];
  for (int i = 0; i < ROWS; ++i) y[i] = sinf(x[i] = -3.0f + 6.0f * (float)i / (ROWS - 1));
  const st_named_view batch[] = {{"x", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = x, .bytes = sizeof x}},
                                 {"y", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = y, .bytes = sizeof y}}};

  st_context* context = NULL;
  st_context_options options;
  st_graph* graph = NULL;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [SCHEDULE] [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(make_graph(context, &graph));
  char one[64], naive[64], same[64], piped[64], filled[64];
  if (train(graph, "one stage", 1, "1f1b", 1, batch, one) != 0) return 1;
  if (train(graph, "naive split", 2, "1f1b", 1, batch, naive) != 0) return 1;
  if (train(graph, "one stage", 1, "1f1b", 8, batch, same) != 0) return 1;
  if (train(graph, "1f1b", 2, "1f1b", 8, batch, piped) != 0) return 1;
  if (train(graph, schedule, 2, schedule, 8, batch, filled) != 0) return 1;
  const int alike = strcmp(one, naive) == 0 && strcmp(same, piped) == 0 && strcmp(same, filled) == 0;
  printf("%s\n", alike ? "the same bits with the same micro-batches" : "they differ");

  st_graph_destroy(graph);
  st_context_destroy(context);
  return alike ? 0 : 1;
}
