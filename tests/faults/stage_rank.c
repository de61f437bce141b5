/* A stage of a host's own pipeline, as a process that finds the others by its launcher's environment.
 *   stage_rank sums                        under every schedule, the gradients must have the bits of one stage
 *   stage_rank fails|dies|stops|computes VICTIM SCHEDULE CHUNKS
 *                                          runs until it ends; at a random call, one of the victim's functions returns an error, kills or
 *                                          stops the process, or computes past the deadline. The others print which rank the error names
 */
#include <scaletrain/scaletrain.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kElements = 20000, kMostParts = 8, kMicroBatches = 5, kDeadline = 1000 };

/* y = w x + part, elementwise; the last part's loss is half the sum of (y - 1)^2. */
typedef struct host {
  float gradients[kMostParts][kElements];
  int calls[kMostParts]; /* backward_weight */
  const char* acts;      /* NULL: does not */
  int before;            /* calls */
} host;

static host one, many;

static float weight(int32_t part) { return 0.9F + 0.03F * (float)part; }

static float input_of(const st_stage_work* work, int64_t i) {
  return work->input.data != NULL ? ((const float*)work->input.data)[i] : 1 / (float)(i + 3 * work->micro_batch + 1);
}

static float output_of(const st_stage_work* work, int64_t i) { return weight(work->part) * input_of(work, i) + (float)work->part; }

static float output_gradient_of(const st_stage_work* work, int64_t i) {
  return work->output_gradient.data != NULL ? ((const float*)work->output_gradient.data)[i] : output_of(work, i) - 1;
}

static void sleep_for(int64_t milliseconds) {
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static st_status act(host* it) {
  if (it->acts == NULL || it->before-- > 0) return ST_OK;
  if (strcmp(it->acts, "dies") == 0) raise(SIGKILL);
  if (strcmp(it->acts, "stops") == 0) raise(SIGSTOP);
  if (strcmp(it->acts, "computes") == 0) sleep_for(kDeadline * 3 / 2);
  if (strcmp(it->acts, "fails") != 0) {
    it->acts = NULL;
    return ST_OK;
  }
  st_callback_error("the sensor is gone");
  return ST_IO;
}

static st_status forward(void* user, const st_stage_work* work) {
  if (work->output.data != NULL)
    for (int64_t i = 0; i < kElements; ++i) ((float*)work->output.data)[i] = output_of(work, i);
  return act(user);
}

static st_status backward_input(void* user, const st_stage_work* work) {
  if (work->input_gradient.data != NULL)
    for (int64_t i = 0; i < kElements; ++i) ((float*)work->input_gradient.data)[i] = weight(work->part) * output_gradient_of(work, i);
  return act(user);
}

static st_status backward_weight(void* user, const st_stage_work* work) {
  host* const it = user;
  for (int64_t i = 0; i < kElements; ++i) it->gradients[work->part][i] += input_of(work, i) * output_gradient_of(work, i);
  ++it->calls[work->part];
  return act(it);
}

static st_status pipeline_of(st_communicator* ranks, const char* schedule, int32_t chunks, host* it, st_pipeline** pipeline) {
  st_op_type alike[kMostParts];
  st_pipeline_callbacks callbacks;
  for (int c = 0; c < kMostParts; ++c) alike[c] = (st_op_type){ST_F32, 1, {kElements}};
  st_pipeline_callbacks_init(&callbacks, sizeof callbacks);
  callbacks.forward = forward;
  callbacks.backward_input = backward_input;
  callbacks.backward_weight = backward_weight;
  return st_pipeline_create(ranks, schedule, chunks, alike, alike, &callbacks, it, pipeline);
}

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, st_last_error());
  return 1;
}

/* Two runs, so that buffers are used again. */
static int gradients(st_communicator* ranks, const char* schedule, int32_t chunks, host* it) {
  st_pipeline* pipeline = NULL;
  memset(it, 0, sizeof *it);
  if (pipeline_of(ranks, schedule, chunks, it, &pipeline) != ST_OK) return failed("create");
  if (st_pipeline_run(pipeline, kMicroBatches) != ST_OK || st_pipeline_run(pipeline, 2) != ST_OK) return failed("run");
  return st_pipeline_destroy(pipeline) == ST_OK ? 0 : failed("destroy");
}

static int sums(st_context* context, st_communicator* ranks) {
  static const struct {
    const char* name;
    int32_t chunks;
  } schedules[] = {{"1f1b", 1}, {"zb-h1", 1}, {"interleaved", 2}, {"zb-v", 2}};
  int32_t size = 0;
  st_communicator* alone = NULL;
  st_communicator_size(ranks, &size);
  if (st_communicator_local(context, 1, NULL, &alone) != ST_OK) return failed("local");
  for (int s = 0; s < 4; ++s) {
    const int32_t chunks = schedules[s].chunks;
    int own = 0;
    if (gradients(alone, "interleaved", size * chunks, &one) != 0 || gradients(ranks, schedules[s].name, chunks, &many) != 0) return 1;
    for (int part = 0; part < size * chunks; ++part) {
      if (many.calls[part] == 0) continue;
      ++own;
      if (memcmp(one.gradients[part], many.gradients[part], sizeof one.gradients[part]) == 0 && many.calls[part] == kMicroBatches + 2)
        continue;
      fprintf(stderr, "%s: part %d has other gradients than with one stage\n", schedules[s].name, part);
      return 1;
    }
    if (own != chunks) return fprintf(stderr, "%s: this stage had %d parts\n", schedules[s].name, own), 1;
  }
  printf("alike\n");
  return st_communicator_destroy(alone) == ST_OK ? 0 : failed("destroy");
}

static int ends(st_communicator* ranks, const char* acts, int32_t victim, const char* schedule, int32_t chunks) {
  int32_t rank = 0;
  st_pipeline* pipeline = NULL;
  st_status status = ST_OK;
  st_communicator_rank(ranks, &rank);
  if (rank == victim) {
    many.acts = acts;
    many.before = (int)(getpid() % (6 * kMicroBatches * chunks)); /* in the first run or the second */
    fprintf(stderr, "%s after %d calls\n", acts, many.before);
  }
  if (pipeline_of(ranks, schedule, chunks, &many, &pipeline) != ST_OK) return failed("create");
  for (int run = 0; status == ST_OK && (run < 4 || strcmp(acts, "computes") != 0); ++run) status = st_pipeline_run(pipeline, kMicroBatches);
  st_error_info info;
  st_error_info_init(&info, sizeof info);
  if (status != ST_OK) st_last_error_info(&info);
  printf("status %d rank %d\n", (int)status, status == ST_OK ? -1 : (int)info.rank);
  fflush(stdout); /* over MPI the process waits for the others at its end */
  if (status != ST_OK) fprintf(stderr, "%s\n", st_last_error());
  return st_pipeline_destroy(pipeline) == ST_OK ? 0 : failed("destroy");
}

int main(int argc, char** argv) {
  st_context* context = NULL;
  st_communicator* ranks = NULL;
  st_communicator_options options;
  if (argc != 2 && argc != 5) return 2;
  st_communicator_options_init(&options, sizeof options);
  options.deadline_milliseconds = argc == 2 || strcmp(argv[1], "dies") == 0 ? 20000 : kDeadline;
  options.start_milliseconds = 20000;
  if (st_context_create(NULL, &context) != ST_OK || st_communicator_env(context, &options, &ranks) != ST_OK) return failed("start");
  const int result = argc == 2 ? sums(context, ranks) : ends(ranks, argv[1], atoi(argv[2]), argv[3], atoi(argv[4]));
  if (st_communicator_destroy(ranks) != ST_OK || st_context_destroy(context) != ST_OK) return failed("end");
  return result;
}
