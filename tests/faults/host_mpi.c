/* A host in C that uses MPI itself and passes its own communicators to ScaleTrain:
 *   mpirun -n 4 host_mpi groups      two halves of the world at once, and the world; sums are checked against MPI_Allreduce
 *   mpirun -n 2 host_mpi funneled    an MPI that serves one thread only is refused
 *   mpirun -n 2 host_mpi uninitialised  a group without MPI_Init is refused, and MPI stays uninitialised
 *   mpirun -n 2 host_mpi gone        after MPI_Finalize a start is refused, and everything can be freed
 * It calls MPI_Init_thread and MPI_Finalize itself; ScaleTrain must call neither. */
#include <mpi.h>
#include <scaletrain/scaletrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kElements = 30000 };
static float values[kElements], expected[kElements];
static int rank_in_world, failures;

static void expect(int is_so, const char* what) {
  if (is_so) return;
  fprintf(stderr, "rank %d: %s (%s)\n", rank_in_world, what, st_last_error());
  ++failures;
}

static st_status reduce(st_communicator* ranks) {
  const int64_t elements = kElements;
  const st_view view = {ST_F32, 1, &elements, NULL, values, kElements * (int64_t)sizeof(float)};
  return st_communicator_all_reduce(ranks, "values", &view, ST_REDUCE_SUM, NULL);
}

/* Small whole numbers, whose sums are exact in any order. */
static void check_sums(st_communicator* ranks, MPI_Comm group, int round) {
  for (int i = 0; i < kElements; ++i) values[i] = (float)((i * 7 + rank_in_world * 13 + round) % 101);
  memcpy(expected, values, sizeof values);
  MPI_Allreduce(MPI_IN_PLACE, expected, kElements, MPI_FLOAT, MPI_SUM, group);
  expect(reduce(ranks) == ST_OK, "all_reduce");
  expect(memcmp(values, expected, sizeof values) == 0, "the sums are not those of MPI");
}

static void check_place(st_communicator* ranks, MPI_Comm group) {
  int wanted = -1, size = -1;
  int32_t rank = -2, count = -2;
  MPI_Comm_rank(group, &wanted);
  MPI_Comm_size(group, &size);
  expect(st_communicator_rank(ranks, &rank) == ST_OK && rank == wanted, "rank is another than MPI's");
  expect(st_communicator_size(ranks, &count) == ST_OK && count == size, "size is another than MPI's");
}

static void groups(st_context* context, const st_communicator_options* options) {
  MPI_Comm half = MPI_COMM_NULL, none = MPI_COMM_NULL;
  st_communicator *own = NULL, *world = NULL, *no = NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank_in_world % 2, -rank_in_world, &half); /* the last rank becomes rank 0 */
  expect(st_communicator_host(context, "mpi", &half, options, &own) == ST_OK, "half");
  expect(st_communicator_host(context, "mpi", NULL, options, &world) == ST_OK, "world");
  expect(st_communicator_host(context, "mpi", &none, options, &no) == ST_INVALID_ARGUMENT, "MPI_COMM_NULL");
  expect(strstr(st_last_error(), "MPI_COMM_NULL") != NULL, "its message");
  if (failures > 0) return;
  check_place(own, half);
  check_place(world, MPI_COMM_WORLD);
  for (int round = 0; round < 3; ++round) {
    check_sums(own, half, round);
    check_sums(world, MPI_COMM_WORLD, round);
  }
  expect(st_communicator_destroy(own) == ST_OK && st_communicator_destroy(world) == ST_OK, "end");
  int sum = 1; /* the host's communicators still work */
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, half);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&half);
}

static void funneled(st_context* context, const st_communicator_options* options) {
  st_communicator* own = NULL;
  expect(st_communicator_host(context, "mpi", NULL, options, &own) == ST_WRONG_STATE, "one thread was enough");
  expect(strstr(st_last_error(), "MPI_THREAD_FUNNELED") != NULL && strstr(st_last_error(), "MPI_THREAD_MULTIPLE is needed") != NULL,
         "the error does not show both levels");
}

static void gone(st_context* context, const st_communicator_options* options) {
  st_communicator *own = NULL, *late = NULL;
  expect(st_communicator_host(context, "mpi", NULL, options, &own) == ST_OK, "world");
  check_sums(own, MPI_COMM_WORLD, 0);
  expect(st_communicator_destroy(own) == ST_OK, "end");
  MPI_Finalize();
  expect(st_communicator_host(context, "mpi", NULL, options, &late) == ST_WRONG_STATE, "a start after MPI_Finalize");
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int is_funneled = strcmp(argv[1], "funneled") == 0, is_uninitialised = strcmp(argv[1], "uninitialised") == 0;
  int level = MPI_THREAD_SINGLE, is_there = 0, is_over = 0;
  st_context* context = NULL;
  st_communicator_options options;
  st_communicator_options_init(&options, sizeof options);
  options.deadline_milliseconds = options.start_milliseconds = 20000;
  if (st_context_create(NULL, &context) != ST_OK) return 3;
  if (is_uninitialised) {
    const MPI_Comm world = MPI_COMM_WORLD;
    st_communicator* own = NULL;
    expect(st_communicator_host(context, "mpi", &world, &options, &own) == ST_WRONG_STATE, "a group without MPI");
    expect(strstr(st_last_error(), "MPI is not initialised") != NULL, "its message");
    MPI_Initialized(&is_there);
    expect(!is_there, "MPI was initialised for the host");
  }
  MPI_Init_thread(&argc, &argv, is_funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_in_world);
  if (is_funneled) funneled(context, &options);
  if (strcmp(argv[1], "groups") == 0) groups(context, &options);
  if (strcmp(argv[1], "gone") == 0) gone(context, &options);
  expect(st_context_destroy(context) == ST_OK, "context");
  MPI_Finalized(&is_over);
  expect(is_over == (strcmp(argv[1], "gone") == 0), "MPI was finalised for the host");
  if (!is_over) MPI_Finalize();
  if (failures == 0) printf("fine\n");
  return failures == 0 ? 0 : 1;
}
