/* Why tile sizes matter: one product with several tile sizes, compared with the plain triple loop. */
#include <math.h>
#include <scaletrain/scaletrain.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                          \
  do {                                                       \
    if ((call) != ST_OK) {                                   \
      fprintf(stderr, "%s\n  %s\n", #call, st_last_error()); \
      return 1;                                              \
    }                                                        \
  } while (0)

enum { SIZE = 384 };

static float a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];
static double plain[SIZE][SIZE];

static void some_numbers(float* x) {
  static unsigned state = 1;
  for (int i = 0; i < SIZE * SIZE; ++i) x[i] = (float)((state = state * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1;
}

/* The definition as a loop; returns its rate in flop/s. */
static double multiply_plainly(void) {
  const clock_t begin = clock();
  for (int i = 0; i < SIZE; ++i)
    for (int k = 0; k < SIZE; ++k)
      for (int j = 0; j < SIZE; ++j) plain[i][j] += (double)a[i][k] * b[k][j];
  return 2.0 * SIZE * SIZE * SIZE / ((double)(clock() - begin) / CLOCKS_PER_SEC + 1e-9);
}

static double largest_difference(void) {
  double largest = 0;
  for (int i = 0; i < SIZE; ++i)
    for (int j = 0; j < SIZE; ++j) largest = fmax(largest, fabs(c[i][j] - plain[i][j]));
  return largest;
}

int main(int argc, char** argv) {
  some_numbers(&a[0][0]);
  some_numbers(&b[0][0]);
  printf("%-22s %8.2f GFLOP/s\n", "plain loop", 1e-9 * multiply_plainly());

  st_context* context = NULL;
  st_context_options options;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  const int64_t dims[] = {SIZE, SIZE}, tiles[] = {8, 32, 64, 128, 384, 0 /* the library's choice */};
  const st_view of_a = {.dtype = ST_F32, .rank = 2, .dims = dims, .data = a, .bytes = sizeof a},
                of_b = {.dtype = ST_F32, .rank = 2, .dims = dims, .data = b, .bytes = sizeof b},
                of_c = {.dtype = ST_F32, .rank = 2, .dims = dims, .data = c, .bytes = sizeof c};
  double worst = 0;
  int products = 0;
  for (int t = 0; t < 6; ++t) {
    st_gemm_problem problem;
    st_gemm_schedule wish;
    st_gemm_info info;
    st_gemm* gemm = NULL;
    CHECK(st_gemm_problem_init(&problem, sizeof problem));
    CHECK(st_gemm_schedule_init(&wish, sizeof wish));
    CHECK(st_gemm_info_init(&info, sizeof info));
    problem.m = problem.n = problem.k = SIZE;
    wish.tile_m = wish.tile_n = wish.tile_k = tiles[t];
    wish.block_m = wish.block_n = tiles[t];                     /* packed at a time: one tile */
    wish.tune_ms = strcmp(options.device, "cpu") == 0 ? 0 : 20; /* a device has rates of kernels that it has measured */
    const st_status made = st_gemm_plan_create(context, &problem, &wish, &gemm);
    if (made == ST_UNSUPPORTED) { /* it has few tiles */
      printf("tile %-17ld %s\n", (long)tiles[t], st_last_error());
      continue;
    }
    CHECK(made);

    double best = 0; /* the first run finds cold caches */
    for (int run = 0; run < 5; ++run) {
      CHECK(st_gemm_run(gemm, 1, &of_a, &of_b, 0, &of_c, NULL));
      CHECK(st_gemm_plan_info(gemm, &info));
      best = fmax(best, info.flops_per_second);
    }
    const double difference = largest_difference();
    worst = fmax(worst, difference);
    ++products;
    char name[64];
    snprintf(name, sizeof name, "tile %ldx%ldx%ld%s", (long)info.tile_m, (long)info.tile_n, (long)info.tile_k,
             tiles[t] == 0 ? ", chosen" : "");
    printf("%-22s %8.2f GFLOP/s  largest difference %.1e  %s\n", name, 1e-9 * best, difference, info.adjusted ? "rounded" : "");
    CHECK(st_gemm_plan_destroy(gemm));
  }
  CHECK(st_context_destroy(context));
  if (products == 0) return fprintf(stderr, "%s has none of these tiles: nothing was multiplied\n", options.device), 1;
  return worst < 1e-4 ? 0 : 1; /* fp32 sums of 384 products of numbers below 1 */
}
