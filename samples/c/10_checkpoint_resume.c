/* An interrupted run: ten steps, a checkpoint, ten more. A second trainer resumes from the checkpoint and makes the same ten, bit by bit:
 * with the same rows, dropout, learning rate and moments. The program removes the files that it wrote. */
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

enum { ROWS = 96 };

static float x[ROWS], y[ROWS];

/* y = x^2 in a shuffled order, which the library draws from these arrays. */
static int make_trainer(st_context* context, st_model** model, st_trainer** trainer) {
  const int64_t rows[] = {ROWS, 1};
  const st_named_view arrays[] = {{"x", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = x, .bytes = sizeof x}},
                                  {"y", {.dtype = ST_F32, .rank = 2, .dims = rows, .data = y, .bytes = sizeof y}}};
  st_data* data = NULL;
  st_recipe* recipe = NULL;
  CHECK(st_model_builtin(context, "mlp", "{\"inputs\": 1, \"hidden\": [32], \"outputs\": 1}", 1, model));
  CHECK(st_data_arrays(context, ROWS, 2, arrays, NULL, NULL, &data));
  CHECK(st_recipe_create("{\"batch\": 32, \"lr\": 0.01, \"dropout\": 0.1, \"warmup\": 15}", &recipe));
  CHECK(st_trainer_create(*model, recipe, data, trainer));
  st_recipe_destroy(recipe);
  st_data_destroy(data); /* the trainer keeps it alive */
  return 0;
}

static int train(st_trainer* trainer, int64_t until) {
  st_step_report report;
  CHECK(st_step_report_init(&report, sizeof report));
  do {
    CHECK(st_trainer_step(trainer, 0, NULL, &report));
    if (report.step % 5 == 0) printf("  step %2d  loss %.9f  lr %.6f\n", (int)report.step, report.loss, report.lr);
  } while (report.step < until);
  return 0;
}

/* Removes the run's files: the name of the newest checkpoint, the lock, and the checkpoint with its safetensors weights. */
static int remove_run(const char* folder) {
  static const char* const kFiles[] = {
      "latest",        "lock", "step-00000010/manifest.json", "step-00000010/model.safetensors", "step-00000010/optimizer.safetensors",
      "step-00000010", ""};
  char path[1024];
  int left = 0;
  for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles; ++i) {
    snprintf(path, sizeof path, "%s/%s", folder, kFiles[i]);
    left += remove(path) != 0;
  }
  return left;
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 && argv[1][0] != '-' ? argv[1] : "checkpoint_resume_run";
  for (int i = 0; i < ROWS; ++i) {
    x[i] = -1 + 2.0F * (float)i / (ROWS - 1);
    y[i] = x[i] * x[i];
  }

  st_context* context = NULL;
  st_context_options options;
  st_model *first_model = NULL, *second_model = NULL;
  st_trainer *first = NULL, *second = NULL;
  st_checkpoint* checkpoint = NULL;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 1 && strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s [FOLDER] [--device NAME]\n", argv[0]), 2;
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(st_checkpoint_create(context, folder, NULL, &checkpoint));

  printf("the first trainer\n");
  if (make_trainer(context, &first_model, &first) != 0 || train(first, 10) != 0) return 1;
  st_pending* saved = NULL; /* training continues when the state is copied; the files are written in the background */
  CHECK(st_trainer_save(first, checkpoint, "{\"note\": \"half of it\"}", &saved));
  if (train(first, 20) != 0) return 1;
  CHECK(st_pending_wait(saved, -1));
  CHECK(st_pending_destroy(saved));

  printf("the second one\n");
  st_load_report loaded;
  CHECK(st_load_report_init(&loaded, sizeof loaded));
  if (make_trainer(context, &second_model, &second) != 0) return 1;
  CHECK(st_trainer_resume(second, checkpoint, NULL, NULL, &loaded)); /* NULL: the newest valid one */
  printf("  resumed from %s, %d tensors, %s\n", loaded.name, (int)loaded.read, loaded.metadata);
  if (train(second, 20) != 0) return 1;

  const char *one = NULL, *other = NULL;
  CHECK(st_trainer_digest(first, &one));
  CHECK(st_trainer_digest(second, &other));
  const int same = strcmp(one, other) == 0;
  printf("%s\n", same ? "the same bits" : "they differ");

  st_trainer_destroy(first);
  st_trainer_destroy(second);
  st_model_destroy(first_model);
  st_model_destroy(second_model);
  st_checkpoint_destroy(checkpoint);
  st_context_destroy(context);
  return same && remove_run(folder) == 0 ? 0 : 1;
}
