/* A pipeline of own stages: a model of four layers, with hand-written forward and backward, is cut into stages on ranks, here threads of
 * this process. The library runs a schedule and sends activations and gradients. The weights have the same bits as with one stage.
 *   16_own_stages [gpipe|1f1b|zb-h1|interleaved|zb-v] */
#include <math.h>
#include <pthread.h>
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

enum { LAYERS = 4, WIDTH = 8, ROWS = 8, SIZE = ROWS * WIDTH, MICRO_BATCHES = 8, ALL = MICRO_BATCHES * SIZE, STEPS = 200 };

/* Each layer, y = tanh(x w), is a part of the model. Only the rank of its stage uses its weights. */
static float weights[LAYERS][WIDTH * WIDTH], gradients[LAYERS][WIDTH * WIDTH];
static float inputs[ALL], targets[ALL], predictions[ALL];

typedef struct {
  st_communicator* communicator;
  const char* schedule;
  int chunks, part[LAYERS]; /* the parts of this rank */
  double bubble, loss, losses[STEPS];
  int failed;
} stage;

static float uniform(unsigned* state) { /* in [-1, 1) */
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / (1 << 23) - 1;
}

static const float* x_of(const st_stage_work* work) { return work->part == 0 ? inputs + work->micro_batch * SIZE : work->input.data; }
static float* y_of(const st_stage_work* work) { return work->output.data ? work->output.data : predictions + work->micro_batch * SIZE; }

/* The gradient of element k of x w. The last part begins with the loss, the mean squared error. */
static float dz_of(const st_stage_work* work, int k) {
  const float y = y_of(work)[k], *dy = work->output_gradient.data;
  return (dy ? dy[k] : 2 * (y - targets[work->micro_batch * SIZE + k]) / ALL) * (1 - y * y);
}

static st_status forward(void* user, const st_stage_work* work) {
  stage* own = user;
  const float *x = x_of(work), *w = weights[work->part], *target = targets + work->micro_batch * SIZE;
  float* y = y_of(work);
  own->part[work->chunk] = work->part;
  for (int k = 0; k < SIZE; ++k) {
    float z = 0;
    for (int i = 0; i < WIDTH; ++i) z += x[k / WIDTH * WIDTH + i] * w[i * WIDTH + k % WIDTH];
    y[k] = (float)tanh(z);
    if (!work->output.data) own->loss += (y[k] - target[k]) * (y[k] - target[k]) / ALL;
  }
  return ST_OK;
}

static st_status backward_input(void* user, const st_stage_work* work) {
  float *w = weights[work->part], *dx = work->input_gradient.data;
  (void)user;
  for (int k = 0; k < SIZE && dx; ++k) {
    dx[k] = 0;
    for (int j = 0; j < WIDTH; ++j) dx[k] += dz_of(work, k / WIDTH * WIDTH + j) * w[k % WIDTH * WIDTH + j];
  }
  return ST_OK;
}

static st_status backward_weight(void* user, const st_stage_work* work) {
  (void)user;
  for (int k = 0; k < SIZE; ++k)
    for (int i = 0; i < WIDTH; ++i) gradients[work->part][i * WIDTH + k % WIDTH] += x_of(work)[k / WIDTH * WIDTH + i] * dz_of(work, k);
  return ST_OK;
}

static int train_stage(stage* own) {
  st_op_type types[LAYERS];
  st_pipeline_callbacks callbacks;
  st_pipeline* pipeline = NULL;
  const char* json = NULL;
  for (int c = 0; c < LAYERS; ++c) types[c] = (st_op_type){ST_F32, 2, {ROWS, WIDTH}};
  CHECK(st_pipeline_callbacks_init(&callbacks, sizeof callbacks));
  callbacks.forward = forward;
  callbacks.backward_input = backward_input;
  callbacks.backward_weight = backward_weight;
  CHECK(st_pipeline_create(own->communicator, own->schedule, own->chunks, types, types, &callbacks, own, &pipeline));
  CHECK(st_pipeline_schedule(pipeline, MICRO_BATCHES, &json));
  own->bubble = strtod(strstr(json, "\"bubble\":") + 9, NULL);
  for (int step = 0; step < STEPS; ++step, own->loss = 0) {
    CHECK(st_pipeline_run(pipeline, MICRO_BATCHES));
    own->losses[step] = own->loss;
    for (int c = 0; c < own->chunks; ++c)
      for (int k = 0; k < WIDTH * WIDTH; ++k) {
        weights[own->part[c]][k] -= gradients[own->part[c]][k]; /* gradient descent with a learning rate of 1 */
        gradients[own->part[c]][k] = 0;
      }
  }
  CHECK(st_pipeline_destroy(pipeline));
  return 0;
}

static void* run_thread(void* own) {
  ((stage*)own)->failed = train_stage(own);
  return NULL;
}

static int train(st_context* context, const char* schedule, int stages) {
  static stage all[LAYERS];
  st_communicator* ranks[LAYERS];
  pthread_t threads[LAYERS];
  unsigned state = 1;
  int failed = 0;
  for (int k = 0; k < LAYERS * WIDTH * WIDTH; ++k) weights[k / (WIDTH * WIDTH)][k % (WIDTH * WIDTH)] = 0.6f * uniform(&state);
  CHECK(st_communicator_local(context, stages, NULL, ranks));
  for (int s = 0; s < stages; ++s) {
    all[s] = (stage){.communicator = ranks[s], .schedule = schedule, .chunks = LAYERS / stages};
    if (pthread_create(&threads[s], NULL, run_thread, &all[s]) != 0) exit(1);
  }
  const stage* last = NULL;
  for (int s = 0; s < stages; ++s) {
    pthread_join(threads[s], NULL);
    st_communicator_destroy(ranks[s]);
    failed |= all[s].failed;
    if (all[s].losses[0] > 0) last = &all[s]; /* has the last part */
  }
  if (failed || !last) return 1;
  printf("%-11s  %d stage%s  bubble %.3f  loss", schedule, stages, stages == 1 ? " " : "s", last->bubble);
  for (int step = 0; step < STEPS; step = step == 0 ? 49 : step + 50) printf("  %.4f", last->losses[step]);
  printf("\n");
  return 0;
}

int main(int argc, char** argv) {
  const char* schedule = argc > 1 && argv[1][0] != '-' ? argv[1] : "1f1b";
  const int has_two = strcmp(schedule, "interleaved") == 0 || strcmp(schedule, "zb-v") == 0; /* parts a stage */
  float alone[LAYERS][WIDTH * WIDTH];
  unsigned state = 2;
  for (int k = 0; k < ALL; ++k) targets[k] = 0.5f * (float)sin(3 * (inputs[k] = uniform(&state)));
  st_context* context = NULL;
  st_context_options options;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [SCHEDULE] [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  if (train(context, "interleaved", 1) != 0) return 1; /* all parts on one stage */
  memcpy(alone, weights, sizeof weights);
  if (train(context, schedule, has_two ? 2 : LAYERS) != 0) return 1;
  const int alike = memcmp(alone, weights, sizeof weights) == 0;
  printf("%s\n", alike ? "the weights have the same bits" : "the weights differ");
  st_context_destroy(context);
  return alike ? 0 : 1;
}
