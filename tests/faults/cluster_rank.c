/* A rank of a cluster, as a host in C: it finds the others by the environment and runs collectives.
 *   cluster_rank sums            prints a digest of sums, which must be equal on all ranks, and checks every other collective
 *   cluster_rank dies VICTIM     that rank kills itself; the others print which rank the error names, and continue
 *   cluster_rank stops VICTIM    the same with a rank that stops itself; the deadline is a second
 *   cluster_rank mesh [VICTIM]   six ranks as 2 x 3 sum along both axes at once and print digests; with VICTIM, which kills itself, whom
 *                                the errors of both axes name
 *   cluster_rank parts           the same on all ranks; the test cuts the link between two hosts after the ranks print "going" */
#include <scaletrain/scaletrain.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kElements = 100000 };
static float values[kElements];

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, st_last_error());
  return 1;
}

static st_status reduce(st_communicator* ranks, int64_t elements) {
  const st_view view = {ST_F32, 1, &elements, NULL, values, elements * 4};
  return st_communicator_all_reduce(ranks, "values", &view, ST_REDUCE_SUM, NULL);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static st_view view_of(float* first, int64_t* elements) {
  const st_view view = {ST_F32, 1, elements, NULL, first, *elements * 4};
  return view;
}

/* Integers and bf16; all values here are whole numbers that the dtype represents exactly. */
static int others_than_f32(st_communicator* ranks, int32_t rank, int32_t size) {
  enum { kFew = 3001 };
  static int32_t whole[kFew];
  static uint16_t half[kFew];
  int64_t few = kFew;
  int wrong = 0;
  const st_view integers = {ST_I32, 1, &few, NULL, whole, sizeof whole}, bf16 = {ST_BF16, 1, &few, NULL, half, sizeof half};
  for (int max = 0; max < 2; ++max) {
    for (int k = 0; k < kFew; ++k) whole[k] = (rank - 1) * (k + 100000);
    wrong += st_communicator_all_reduce(ranks, "integers", &integers, max ? ST_REDUCE_MAX : ST_REDUCE_MIN, NULL) != ST_OK;
    for (int k = 0; k < kFew; ++k) wrong += whole[k] != (max ? size - 2 : -1) * (k + 100000);
  }
  for (int k = 0; k < kFew; ++k) half[k] = rank == k % size ? 0x4100 : 0x3f80; /* 8 and 1 */
  wrong += st_communicator_all_reduce(ranks, "bf16", &bf16, ST_REDUCE_SUM, NULL) != ST_OK;
  const float sum = (float)(size + 7);
  uint32_t bits;
  memcpy(&bits, &sum, sizeof bits);
  for (int k = 0; k < kFew; ++k) wrong += half[k] != bits >> 16;
  wrong += st_communicator_all_reduce(ranks, "bf16", &bf16, ST_REDUCE_MAX, NULL) != ST_OK || half[kFew - 1] != bits >> 16;
  return wrong;
}

/* Each collective reverses another one, or has a result that is known beforehand. Returns how many were wrong. */
static int others(st_communicator* ranks, int32_t rank, int32_t size) {
  static float own[kElements], back[kElements];
  int64_t whole = 10001, begin = 0, share = 0, parts = 1000 * (int64_t)size, few = 777;
  int wrong = 0;
  st_pending* sent = NULL;

  for (int64_t k = 0; k < whole; ++k) values[k] = own[k] = (float)(rank + 1) / (float)(k + 3);
  st_communicator_share(ranks, whole, rank, &begin, &share);
  const st_view all = view_of(values, &whole), mine = view_of(back + begin, &share), gathered = view_of(back, &whole);
  const st_view reduced = view_of(own, &whole);
  wrong += st_communicator_all_reduce(ranks, "all", &reduced, ST_REDUCE_MEAN, NULL) != ST_OK;
  wrong += st_communicator_reduce_scatter(ranks, "scattered", &all, &mine, ST_REDUCE_MEAN, NULL) != ST_OK;
  wrong += st_communicator_all_gather(ranks, "gathered", &mine, &gathered, NULL) != ST_OK;
  wrong += memcmp(own, back, (size_t)whole * 4) != 0;

  for (int64_t k = 0; k < parts; ++k) values[k] = (float)(k + 100000 * rank);
  const st_view from = view_of(values, &parts), to = view_of(own, &parts), again = view_of(back, &parts);
  wrong += st_communicator_all_to_all(ranks, "there", &from, &to, NULL) != ST_OK;
  wrong += own[0] != (float)(1000 * rank) || own[parts - 1] != (float)(1000 * rank + 999 + 100000 * (size - 1));
  wrong += st_communicator_all_to_all(ranks, "back", &to, &again, NULL) != ST_OK;
  wrong += memcmp(values, back, (size_t)parts * 4) != 0;

  for (int64_t k = 0; k < few; ++k) values[k] = (float)rank;
  const st_view told = view_of(values, &few), came = view_of(own, &few);
  wrong += st_communicator_send(ranks, "to the next", &told, (rank + 1) % size, &sent) != ST_OK;
  wrong += st_communicator_receive(ranks, "of the one before", &came, (rank + size - 1) % size, NULL) != ST_OK;
  wrong += st_pending_wait(sent, -1) != ST_OK || st_pending_destroy(sent) != ST_OK || own[few - 1] != (float)((rank + size - 1) % size);
  wrong += st_communicator_broadcast(ranks, "of the last", &told, size - 1, NULL) != ST_OK || values[few - 1] != (float)(size - 1);
  wrong += others_than_f32(ranks, rank, size);
  return wrong + (st_communicator_barrier(ranks, "end", NULL) != ST_OK);
}

static uint64_t digest_of(const float* summed, int64_t length) {
  uint64_t digest = 1469598103934665603u;
  for (int64_t k = 0; k < length; ++k) {
    uint32_t bits;
    memcpy(&bits, &summed[k], sizeof bits);
    digest = (digest ^ bits) * 1099511628211u;
  }
  return digest;
}

static int sums(st_communicator* ranks, int32_t rank) {
  const int64_t lengths[] = {1, 1000, kElements};
  for (int i = 0; i < 3; ++i) {
    for (int64_t k = 0; k < lengths[i]; ++k) values[k] = (float)(rank + 1) / (float)(k + 3);
    if (reduce(ranks, lengths[i]) != ST_OK) return failed("all_reduce");
    printf("%lld: %016llx\n", (long long)lengths[i], (unsigned long long)digest_of(values, lengths[i]));
  }
  int32_t size = 0;
  st_communicator_size(ranks, &size);
  const int wrong = others(ranks, rank, size);
  printf("others: %d wrong\n", wrong);
  return wrong == 0 ? 0 : failed("others");
}

static int mesh(st_communicator* ranks, int32_t rank, int32_t victim) {
  static float along[2][kElements];
  const char* const names[2] = {"tensor", "data"};
  const int32_t colors[2] = {rank / 2, rank % 2};
  int64_t length = kElements;
  st_communicator* axes[2] = {NULL, NULL};
  for (int axis = 0; axis < 2; ++axis)
    if (st_communicator_split(ranks, colors[axis], rank, NULL, &axes[axis]) != ST_OK) return failed("split");
  int named[2] = {-1, -1};
  for (int round = 0; victim >= 0 ? named[0] < 0 || named[1] < 0 : round < 10; ++round) {
    st_pending* pending[2] = {NULL, NULL};
    if (rank == victim && round == 5) raise(SIGKILL);
    for (int axis = 0; axis < 2; ++axis) {
      for (int64_t k = 0; k < length; ++k) along[axis][k] = (float)(rank + 1) / (float)(k + 3 + round);
      const st_view view = view_of(along[axis], &length);
      if (st_communicator_all_reduce(axes[axis], names[axis], &view, ST_REDUCE_SUM, &pending[axis]) != ST_OK) return failed("all_reduce");
    }
    for (int axis = 0; axis < 2; ++axis) {
      if (st_pending_wait(pending[axis], -1) != ST_OK) {
        st_error_info info;
        st_error_info_init(&info, sizeof info);
        st_last_error_info(&info);
        named[axis] = info.rank;
      }
      st_pending_destroy(pending[axis]);
    }
  }
  if (victim >= 0)
    printf("rank %d on one axis, %d on the other\n", named[0], named[1]);
  else
    for (int axis = 0; axis < 2; ++axis)
      printf("%d %s: %016llx\n", (int)rank, names[axis], (unsigned long long)digest_of(along[axis], length));
  fflush(stdout);
  for (int axis = 0; axis < 2; ++axis)
    if (st_communicator_destroy(axes[axis]) != ST_OK) return failed("destroy");
  return 0;
}

static int ends(st_communicator* ranks, int32_t rank, int32_t victim, int signal_number) {
  st_status status = ST_OK;
  double began = 0;
  for (int round = 0; status == ST_OK; ++round) {
    if (rank == victim && round == 5 + (int)getpid() % 40) raise(signal_number);
    if (victim < 0 && round == 20) {
      printf("going\n");
      fflush(stdout);
    }
    began = now();
    status = reduce(ranks, kElements);
  }
  st_error_info info;
  st_error_info_init(&info, sizeof info);
  st_last_error_info(&info);
  printf("%s of host %.*s: status %d rank %d in time %d\n", info.collective, (int)strcspn(info.host, ","), info.host, (int)status,
         (int)info.rank, now() - began < 1.5);
  fflush(stdout); /* over MPI the process waits for the others at its end */
  return 0;
}

int main(int argc, char** argv) {
  st_context* context = NULL;
  st_communicator* ranks = NULL;
  st_communicator_options options;
  if (argc < 2) return 2;
  st_communicator_options_init(&options, sizeof options);
  const int parts = strcmp(argv[1], "parts") == 0, stops = strcmp(argv[1], "stops") == 0;
  options.deadline_milliseconds = stops || parts ? 1000 : 10000;
  options.start_milliseconds = 20000;
  if (st_context_create(NULL, &context) != ST_OK || st_communicator_env(context, &options, &ranks) != ST_OK) return failed("start");
  int32_t rank = 0;
  st_communicator_rank(ranks, &rank);
  const int victim = argc > 2 ? atoi(argv[2]) : -1;
  const int result = strcmp(argv[1], "sums") == 0   ? sums(ranks, rank)
                     : strcmp(argv[1], "mesh") == 0 ? mesh(ranks, rank, victim)
                                                    : ends(ranks, rank, victim, stops ? SIGSTOP : SIGKILL);
  if (st_communicator_destroy(ranks) != ST_OK || st_context_destroy(context) != ST_OK) return failed("end");
  return result;
}
