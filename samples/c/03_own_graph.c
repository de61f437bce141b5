/* An own graph: a model with two inputs and one output, fitted to arrays that this program owns and the library reads in place.
 * Build: cc 03_own_graph.c -lscaletrain -lm */
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

enum { ROWS = 1024, STEPS = 1000 };
static float points[ROWS][2], heights[ROWS][1];

/* A hill on a slope. */
static float height(float x, float y) { return expf(-2 * (x * x + y * y)) + 0.5f * x; }

/* Built from typed op functions, and from layers where they exist. A wrong call gives value 0 and is reported by st_model_create. */
static void describe(st_graph* graph) {
  const int64_t two[] = {ST_BATCH, 2}, one[] = {ST_BATCH, 1};
  st_value point = 0, wanted = 0, hidden = 0, found = 0;
  st_graph_input(graph, "point", ST_F32, 2, two, &point);
  st_graph_input(graph, "height", ST_F32, 2, one, &wanted);
  st_layer_linear(graph, "hidden", point, "{\"outputs\": 32, \"init\": \"kaiming\", \"scale\": 2}", &hidden);
  hidden = st_op_tanh(graph, hidden);
  st_layer_linear(graph, "out", st_op_concat(graph, 2, (const st_value[]){hidden, point}, -1), "{\"outputs\": 1}", &found);
  st_graph_output(graph, "found", found);
  st_graph_loss(graph, st_op_mse(graph, found, wanted, ST_NONE, NULL));
}

static st_status on_step(void* user, const st_step_report* report) {
  if (report->step % 100 == 0) printf("step %3d  loss %.5f\n", (int)report->step, report->loss);
  *(double*)user = report->loss;
  return ST_OK;
}

int main(int argc, char** argv) {
  const int64_t dims[2][2] = {{ROWS, 2}, {ROWS, 1}};
  const st_named_view arrays[] = {{"point", {.dtype = ST_F32, .rank = 2, .dims = dims[0], .data = points, .bytes = sizeof points}},
                                  {"height", {.dtype = ST_F32, .rank = 2, .dims = dims[1], .data = heights, .bytes = sizeof heights}}};
  for (int i = 0; i < ROWS; ++i) {
    points[i][0] = -1 + 2 * (float)(i % 32) / 31;
    points[i][1] = -1 + 2 * (float)(i / 32) / 31;
    heights[i][0] = height(points[i][0], points[i][1]);
  }

  st_context* context = NULL;
  st_context_options options;
  st_graph* graph = NULL;
  st_model* model = NULL;
  st_data* data = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  double loss = NAN;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(st_graph_create(context, &graph));
  describe(graph);
  CHECK(st_model_create(graph, 1, &model));
  CHECK(st_data_arrays(context, ROWS, 2, arrays, NULL, NULL, &data)); /* no copy: the arrays outlive the data */
  CHECK(st_recipe_create("{\"batch\": 64, \"lr\": 0.01, \"weight_decay\": 0}", &recipe));
  CHECK(st_trainer_create(model, recipe, data, &trainer));
  CHECK(st_trainer_run(trainer, STEPS, on_step, &loss));
  printf(loss < 0.001 ? "it knows the hill\n" : "it does not know the hill\n");

  st_trainer_destroy(trainer);
  st_recipe_destroy(recipe);
  st_data_destroy(data);
  st_model_destroy(model);
  st_graph_destroy(graph);
  st_context_destroy(context);
  return loss < 0.001 ? 0 : 1;
}
