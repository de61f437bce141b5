/* ZeRO between processes: each rank holds only its shards of parameters, gradients and optimizer state; the bits are those of one rank. All
 * ranks save one checkpoint together, each its own shards, and read a whole weight; then a single process resumes from the checkpoint.
 * Calls that end in _collective are made by all ranks. Run: scaletrain launch -n 2 -- 12_zero FOLDER */
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

enum { ROWS = 64, BATCH = 8, STEPS = 50 };

/* y = sin x by a small built-in model. */
static st_status make_model(st_context* context, st_model** model) {
  return st_model_builtin(context, "mlp", "{\"inputs\": 1, \"hidden\": [64, 64], \"outputs\": 1}", 1, model);
}

/* The rows of this rank: every size-th micro-batch of a step. */
static int64_t own_rows(int rank, int size, float* x, float* y) {
  int64_t count = 0;
  for (int i = 0; i < ROWS; ++i) {
    if (i / BATCH % size != rank) continue;
    x[count] = -3.0f + 6.0f * (float)i / (ROWS - 1);
    y[count] = sinf(x[count]);
    ++count;
  }
  return count;
}

static int train(st_trainer* trainer, int rank, int size, st_step_report* report) {
  float x[ROWS], y[ROWS];
  const int64_t count = own_rows(rank, size, x, y), rows[] = {count, 1}, bytes = count * (int64_t)sizeof(float);
  const st_named_view batch[] = {{"x", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = x, .bytes = bytes}},
                                 {"y", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = y, .bytes = bytes}}};
  CHECK(st_step_report_init(report, sizeof *report));
  for (int step = 0; step < STEPS; ++step) CHECK(st_trainer_step(trainer, 2, batch, report));
  return 0;
}

/* Resumes from the checkpoint on one rank, which has the whole state. */
static int resume_alone(st_context* context, st_checkpoint* checkpoint, st_recipe* recipe, char* state) {
  st_model* model = NULL;
  st_trainer* trainer = NULL;
  st_step_report report;
  const char* hex = NULL;
  CHECK(make_model(context, &model));
  CHECK(st_trainer_create(model, recipe, NULL, &trainer));
  CHECK(st_trainer_resume(trainer, checkpoint, NULL, NULL, NULL));
  if (train(trainer, 0, 1, &report) != 0) return 1;
  CHECK(st_trainer_digest(trainer, &hex));
  strcpy(state, hex);
  printf("1 rank   step %d  loss %.5f\n", (int)report.step, report.loss);
  st_trainer_destroy(trainer);
  st_model_destroy(model);
  return 0;
}

int main(int argc, char** argv) {
  st_context* context = NULL;
  st_context_options where;
  st_communicator *ranks = NULL, *own = NULL, *half = NULL;
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  st_checkpoint* checkpoint = NULL;
  int32_t rank = 0, size = 1;
  CHECK(st_context_options_init(&where, sizeof where));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [FOLDER] [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) where.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&where, &context));
  CHECK(st_communicator_env(context, NULL, &ranks)); /* as started by scaletrain launch, torchrun, mpirun or srun */
  CHECK(st_communicator_rank(ranks, &rank));
  CHECK(st_communicator_size(ranks, &size));
  st_communicator_options single;
  CHECK(st_communicator_options_init(&single, sizeof single));
  single.allow_single = 1;
  CHECK(st_communicator_duplicate(ranks, NULL, &own));                        /* for this program's calls: `ranks` is the trainer's */
  CHECK(st_communicator_split(ranks, 2 * rank / size, rank, &single, &half)); /* the ranks of a stage, if there were two stages */
  CHECK(make_model(context, &model));
  CHECK(st_recipe_create("{\"batch\": 8, \"micro_batches\": 8, \"lr\": 0.01, \"weight_decay\": 0}", &recipe));
  st_recipe* sharded = NULL;
  CHECK(st_recipe_create("{\"batch\": 8, \"micro_batches\": 8, \"lr\": 0.01, \"weight_decay\": 0, \"zero\": 3}", &sharded));
  CHECK(st_trainer_create_in_group(model, sharded, NULL, ranks, &trainer));

  st_checkpoint_options options;
  CHECK(st_checkpoint_options_init(&options, sizeof options));
  options.read_only = rank != 0; /* rank 0 owns the folder; the others write into it */
  const char* folder = argc > 1 && argv[1][0] != '-' ? argv[1] : "zero_run";
  if (rank == 0) CHECK(st_checkpoint_create(context, folder, &options, &checkpoint));
  CHECK(st_communicator_barrier(own, "the folder is there", NULL));
  if (rank != 0) CHECK(st_checkpoint_create(context, folder, &options, &checkpoint));

  st_step_report report;
  const char* hex = NULL;
  if (train(trainer, rank, size, &report) != 0) return 1;
  CHECK(st_trainer_save_collective(trainer, checkpoint, NULL, NULL));
  if (train(trainer, rank, size, &report) != 0) return 1;
  CHECK(st_trainer_digest_collective(trainer, &hex));
  float weight[64];
  const int64_t dims[] = {1, 64};
  const st_view to = {.dtype = ST_F32, .rank = 2, .dims = dims, .data = weight, .bytes = sizeof weight};
  CHECK(st_model_get_collective(model, "layer.0.weight", &to)); /* st_model_get would be ST_WRONG_STATE: this rank has only its shard */

  int alike = 1;
  if (rank == 0) {
    char alone[64];
    printf("%d ranks  step %d  loss %.5f\n", (int)size, (int)report.step, report.loss);
    printf("weights  %.4f %.4f .. %.4f\n", weight[0], weight[1], weight[63]);
    if (resume_alone(context, checkpoint, recipe, alone) != 0) return 1;
    alike = strcmp(hex, alone) == 0;
    printf("%s\n", alike ? "the same bits" : "they differ");
  }
  st_checkpoint_destroy(checkpoint);
  st_trainer_destroy(trainer);
  st_recipe_destroy(sharded);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  st_communicator_destroy(half);
  st_communicator_destroy(own);
  st_communicator_destroy(ranks);
  st_context_destroy(context);
  return alike ? 0 : 1;
}
