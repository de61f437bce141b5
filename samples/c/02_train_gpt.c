/* Trains a small GPT on a text file, measures its loss on text it has not seen, generates text, and saves its weights.
 * Usage: 02_train_gpt TEXT [WEIGHTS.safetensors] [--device NAME] */
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

static st_status show(void* user, const st_step_report* report) {
  (void)user;
  if (report->step % 20 == 0) printf("step %3d  loss %.3f\n", (int)report->step, report->loss);
  return ST_OK; /* any other status would end the run */
}

static st_status put(void* user, int32_t token) { /* tokens are bytes here */
  (void)user;
  putchar(token >= 32 && token < 127 ? token : ' ');
  return ST_OK;
}

/* Weights written to a file and read by another model have the same values. */
static int round_trip(st_context* context, const char* options, st_model* model, const char* path) {
  static const char* const name = "block.0.attention.qkv.weight";
  st_model* copy = NULL;
  CHECK(st_model_builtin(context, "gpt", options, 2, &copy)); /* another seed: other values before the file is read */
  CHECK(st_model_write_file(model, path, NULL));
  CHECK(st_model_read_file(copy, path, NULL, NULL));

  const int64_t dims[] = {64, 192};
  static float written[64 * 192], read[64 * 192];
  const st_view to_written = {.dtype = ST_F32, .rank = 2, .dims = dims, .data = written, .bytes = sizeof written},
                to_read = {.dtype = ST_F32, .rank = 2, .dims = dims, .data = read, .bytes = sizeof read};
  CHECK(st_model_get(model, name, &to_written));
  CHECK(st_model_get(copy, name, &to_read));
  CHECK(st_model_destroy(copy));
  const int equal = memcmp(written, read, sizeof read) == 0;
  printf("weights in %s: %s\n", path, equal ? "read back, equal" : "DIFFERENT");
  return equal ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 2 || strcmp(argv[argc - 1], "--device") == 0)
    return fprintf(stderr, "usage: %s TEXT [WEIGHTS.safetensors] [--device NAME]\n", argv[0]), 2;
  const char* weights = argc > 2 && argv[2][0] != '-' ? argv[2] : "gpt.safetensors";
  const char* options = "{\"layers\": 2, \"width\": 64, \"heads\": 2, \"context\": 32}";

  st_context* context = NULL;
  st_context_options where;
  st_data *data = NULL, *train = NULL, *validation = NULL;
  CHECK(st_context_options_init(&where, sizeof where));
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) where.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&where, &context));
  CHECK(st_data_files(context, argv[1], "{\"context\": 32}", &data));
  CHECK(st_data_split(data, 0.1, 0, &train, &validation)); /* the last tenth of the text is for validation */

  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  CHECK(st_model_builtin(context, "gpt", options, 1, &model));
  CHECK(st_recipe_create("{\"batch\": 16, \"lr\": 0.003}", &recipe));
  CHECK(st_trainer_create(model, recipe, train, &trainer));

  st_evaluation before, after;
  CHECK(st_evaluation_init(&before, sizeof before));
  CHECK(st_evaluation_init(&after, sizeof after));
  CHECK(st_trainer_evaluate(trainer, validation, &before));
  CHECK(st_trainer_run(trainer, 100, show, NULL));
  CHECK(st_trainer_evaluate(trainer, validation, &after));
  printf("validation loss %.3f, then %.3f nats a byte\n", before.loss, after.loss);

  st_predictor* predictor = NULL;
  st_generate_options generate;
  const int32_t prompt[] = {'T', 'h', 'e', ' '};
  CHECK(st_predictor_create(model, NULL, &predictor));
  CHECK(st_generate_options_init(&generate, sizeof generate));
  generate.tokens = 60;
  printf("The ");
  CHECK(st_predictor_generate(predictor, 4, prompt, &generate, put, NULL));
  printf("\n");
  const int failed = round_trip(context, options, model, weights);

  st_predictor_destroy(predictor);
  st_trainer_destroy(trainer);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  st_data_destroy(validation);
  st_data_destroy(train);
  st_data_destroy(data);
  st_context_destroy(context);
  return failed || after.loss >= before.loss - 1.0; /* uniformly random bytes cost 5.5 nats */
}
