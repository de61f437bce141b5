/* Gradient accumulation: the gradient of 12 rows at once, and of the same rows as 4 micro-batches of 3. Rows have different numbers of
 * tokens, and the last micro-batch has few, so that the mean of the four means would be wrong. */
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

enum { ROWS = 12, MICRO_BATCH = 3, WIDTH = 8 };

static const int kTokens[ROWS] = {9, 4, 7, 8, 8, 2, 5, 9, 6, 1, 3, 2};
static float w[WIDTH], dw[WIDTH];

/* A number between -1 and 1, a function of i. */
static float noise(unsigned i) { return (float)(((i * 1664525u + 1013904223u) * 22695477u) >> 8) / (1 << 23) - 1; }

/* For rows [begin, end): sets dw to the gradient of the squared error *summed* over tokens; returns their number. */
static int backward(int begin, int end) {
  int tokens = 0;
  for (int j = 0; j < WIDTH; ++j) dw[j] = 0;
  for (int row = begin; row < end; ++row)
    for (int t = 0; t < kTokens[row]; ++t, ++tokens) {
      float x[WIDTH], error = -noise((unsigned)(row + t));
      for (int j = 0; j < WIDTH; ++j) error += w[j] * (x[j] = noise((unsigned)(row * 1000 + t * 10 + j)));
      for (int j = 0; j < WIDTH; ++j) dw[j] += 2 * error * x[j];
    }
  return tokens;
}

static void show(const char* what, const float* gradient) {
  printf("%-22s", what);
  for (int j = 0; j < 4; ++j) printf(" %9.6f", gradient[j]);
  printf(" ...\n");
}

static double largest_difference(const float* a, const float* b) {
  double largest = 0;
  for (int j = 0; j < WIDTH; ++j) largest = fmax(largest, fabs((double)a[j] - b[j]));
  return largest;
}

int main(int argc, char** argv) {
  const int64_t dims[] = {WIDTH};
  const st_view gradient = {.dtype = ST_F32, .rank = 1, .dims = dims, .data = dw, .bytes = sizeof dw};
  float whole[WIDTH], means[WIDTH] = {0};
  st_context* context = NULL;
  st_context_options options;
  st_accumulator* accumulator = NULL;
  int32_t whole_step = 0;
  double tokens = 0;
  for (int j = 0; j < WIDTH; ++j) w[j] = 0.1F * (float)(j - 3);
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));

  CHECK(st_accumulator_create(context, 1, 1, &gradient, &accumulator)); /* borrows dw */
  CHECK(st_accumulator_add(accumulator, backward(0, ROWS)));
  CHECK(st_accumulator_should_step(accumulator, &whole_step));
  for (int j = 0; j < WIDTH; ++j) whole[j] = dw[j];
  show("12 rows at once", whole);

  CHECK(st_accumulator_set_steps(accumulator, ROWS / MICRO_BATCH));
  for (int begin = 0; begin < ROWS; begin += MICRO_BATCH) {
    const int count = backward(begin, begin + MICRO_BATCH);
    for (int j = 0; j < WIDTH; ++j) means[j] += dw[j] / (float)count * MICRO_BATCH / ROWS;
    CHECK(st_accumulator_add(accumulator, count)); /* the last call writes the mean into dw */
    CHECK(st_accumulator_should_step(accumulator, &whole_step));
    printf("  %2d tokens%s\n", count, whole_step ? ", and now dw is for the optimizer" : "");
  }
  CHECK(st_accumulator_weight(accumulator, &tokens));
  show("4 micro-batches of 3", dw);
  show("a mean of means", means);
  const double apart = largest_difference(dw, whole), wrong = largest_difference(means, whole);
  printf("over %.0f tokens: largest difference %.1e, of a mean of means %.1e\n", tokens, apart, wrong);

  st_accumulator_destroy(accumulator);
  st_context_destroy(context);
  return !whole_step || tokens != 64 || apart > 1e-6 || wrong < 1e-2;
}
