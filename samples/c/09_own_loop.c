/* An own training loop: a two-layer net with hand-written forward and backward, over its own arrays. The library scales the loss, clips,
 * computes the learning rate and updates. One step's gradients overflow, and it is skipped. */
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

enum { ROWS = 64, HIDDEN = 32 };

/* y = v . tanh(w x + b), and its gradients */
static float w[HIDDEN], b[HIDDEN], v[HIDDEN], dw[HIDDEN], db[HIDDEN], dv[HIDDEN];

static float uniform(void) { /* in [-1, 1) */
  static unsigned state = 1;
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (1 << 23) - 1;
}

/* The mean squared error of sin(3 x), and `scale` times its gradients. */
static double forward_backward(double scale) {
  double loss = 0;
  for (int j = 0; j < HIDDEN; ++j) dw[j] = db[j] = dv[j] = 0;
  for (int i = 0; i < ROWS; ++i) {
    float x = uniform(), y = 0, h[HIDDEN];
    for (int j = 0; j < HIDDEN; ++j) y += v[j] * (h[j] = tanhf(w[j] * x + b[j]));
    const float error = y - sinf(3 * x);
    loss += error * error / ROWS;
    const float dy = (float)(scale * 2 * error / ROWS);
    for (int j = 0; j < HIDDEN; ++j) {
      const float dh = dy * v[j] * (1 - h[j] * h[j]);
      dv[j] += dy * h[j];
      dw[j] += dh * x;
      db[j] += dh;
    }
  }
  return loss;
}

int main(int argc, char** argv) {
  const int64_t dims[] = {HIDDEN};
  const st_named_view parameters[] = {{"w", {.dtype = ST_F32, .rank = 1, .dims = dims, .data = w, .bytes = sizeof w}},
                                      {"b", {.dtype = ST_F32, .rank = 1, .dims = dims, .data = b, .bytes = sizeof b}},
                                      {"v", {.dtype = ST_F32, .rank = 1, .dims = dims, .data = v, .bytes = sizeof v}}};
  const st_view gradients[] = {{.dtype = ST_F32, .rank = 1, .dims = dims, .data = dw, .bytes = sizeof dw},
                               {.dtype = ST_F32, .rank = 1, .dims = dims, .data = db, .bytes = sizeof db},
                               {.dtype = ST_F32, .rank = 1, .dims = dims, .data = dv, .bytes = sizeof dv}};
  st_context* context = NULL;
  st_context_options options;
  st_loss_scaler* scaler = NULL;
  st_optimizer* optimizer = NULL;
  st_schedule* schedule = NULL;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(st_loss_scaler_create(context, NULL, &scaler));
  CHECK(st_schedule_create("{\"schedule\": \"cosine\", \"lr\": 0.02, \"warmup\": 20, \"lr_steps\": 600}", &schedule));
  CHECK(st_optimizer_create(context, "{\"optimizer\": \"adamw\", \"groups\": [{\"pattern\": \"b\", \"weight_decay_scale\": 0}]}", 3,
                            parameters, &optimizer));
  for (int j = 0; j < HIDDEN; ++j) w[j] = 2 * uniform(), b[j] = uniform(), v[j] = 0.1F * uniform();

  double first = 0, loss = 0;
  int64_t updates = 0;
  int skips = 0;
  for (int step = 1; step <= 600; ++step) {
    double scale = 0, norm = 0, lr = 0;
    int32_t run = 0, skipped = 0;
    char text[32];
    CHECK(st_loss_scaler_scale(scaler, &scale));
    loss = forward_backward(scale);
    if (step == 300) dw[7] = INFINITY; /* as if 16 bits had overflowed */
    CHECK(st_loss_scaler_unscale(scaler, 3, gradients, &run));
    CHECK(st_clip_norm(context, 3, gradients, 1, &norm));
    CHECK(st_loss_scaler_step(scaler, &run));
    if (run) {
      CHECK(st_schedule_at(schedule, updates++, &lr));
      snprintf(text, sizeof text, "%.9g", lr);
      CHECK(st_optimizer_set(optimizer, "lr", text));
      CHECK(st_optimizer_step(optimizer, 3, gradients, NULL));
    }
    CHECK(st_loss_scaler_update(scaler, &skipped));
    skips += skipped;
    if (step == 1) first = loss;
    if (step == 1 || step % 150 == 0) printf("step %3d  loss %.4f  norm %.3f  scale %.0f\n", step, loss, norm, scale);
  }
  printf("%d of 600 steps was skipped\n", skips);

  st_optimizer_destroy(optimizer);
  st_schedule_destroy(schedule);
  st_loss_scaler_destroy(scaler);
  st_context_destroy(context);
  return loss > 0.02 * first || skips != 1 || updates != 599;
}
