/* Predicts while it trains: one thread trains a net on y = sin x, another asks it the same question repeatedly. Each answer uses the
 * weights of one whole step, taken by st_predictor_refresh; no thread waits for the other.
 * Build: cc 04_predict_while_training.c -lscaletrain -lm -lpthread */
#include <math.h>
#include <pthread.h>
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

enum { ROWS = 64, ROUNDS = 4, STEPS = 150 };

/* State of the training thread. Rounds run one after the other, so that the printed numbers are the same in every run. */
struct training {
  st_trainer* trainer;
  st_named_view batch[2];
  st_status status;
};

static void* train(void* argument) {
  struct training* t = argument;
  for (int step = 0; step < STEPS && t->status == ST_OK; ++step) t->status = st_trainer_step(t->trainer, 2, t->batch, NULL);
  return NULL;
}

/* One forward pass of one row. May be called from any thread, at any time. */
static st_status ask(st_predictor* predictor, float x, float* y) {
  const int64_t one[] = {1, 1};
  const st_named_view in = {"x", {.dtype = ST_F32, .rank = 2, .dims = one, .data = &x, .bytes = sizeof x}},
                      out = {"prediction", {.dtype = ST_F32, .rank = 2, .dims = one, .data = y, .bytes = sizeof *y}};
  return st_predictor_run(predictor, 1, &in, 1, &out);
}

int main(int argc, char** argv) {
  const int64_t rows[] = {ROWS, 1};
  float x[ROWS], y[ROWS], answer = 0, again = 0;
  for (int i = 0; i < ROWS; ++i) y[i] = sinf(x[i] = -3.0f + 6.0f * (float)i / (ROWS - 1));

  st_context* context = NULL;
  st_context_options options;
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_predictor* predictor = NULL;
  struct training t = {NULL,
                       {{"x", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = x, .bytes = sizeof x}},
                        {"y", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = y, .bytes = sizeof y}}},
                       ST_OK};
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(st_model_builtin(context, "mlp", "{\"hidden\": [32]}", 1, &model));
  CHECK(st_recipe_create("{\"batch\": 64, \"lr\": 0.01, \"weight_decay\": 0}", &recipe));
  CHECK(st_trainer_create(model, recipe, NULL, &t.trainer));
  CHECK(st_predictor_create(model, NULL, &predictor)); /* a snapshot: 4 bytes a parameter */

  int steady = 1;
  CHECK(ask(predictor, 1.5f, &answer));
  for (int round = 1; round <= ROUNDS; ++round) {
    pthread_t trainer;
    if (pthread_create(&trainer, NULL, train, &t) != 0) return 1;
    for (int i = 0; i < 200; ++i) { /* while the trainer steps, the snapshot gives the same answer */
      CHECK(ask(predictor, 1.5f, &again));
      steady = steady && again == answer;
    }
    if (pthread_join(trainer, NULL) != 0 || t.status != ST_OK) return 1;
    CHECK(st_predictor_refresh(predictor)); /* also allowed in the middle of a step: takes the newest whole one */
    CHECK(ask(predictor, 1.5f, &answer));
    printf("after %3d steps  sin 1.5 is about %.3f\n", round * STEPS, answer);
  }
  const int learned = fabsf(answer - sinf(1.5f)) < 0.05f && steady;
  printf("%s\n", learned ? "it answered while it learned" : "it did not");

  st_predictor_destroy(predictor);
  st_trainer_destroy(t.trainer);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  st_context_destroy(context);
  return learned ? 0 : 1;
}
