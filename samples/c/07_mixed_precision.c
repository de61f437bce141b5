/* Trains the same small GPT in fp32, bf16 and fp16, from the same weights on the same text, and prints the losses side by side. In fp16 the
 * loss is scaled; the initial scale is too high, so the first steps are skipped until it fits. Usage: 07_mixed_precision TEXT [--device
 * NAME] */
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

enum { STEPS = 60, EVERY = 10 };

typedef struct run {
  const char* precision;
  double losses[STEPS / EVERY], validation, scale;
  int skipped;
} run;

static st_status record(void* user, const st_step_report* report) {
  run* r = (run*)user;
  if (report->step % EVERY == 0) r->losses[report->step / EVERY - 1] = report->loss;
  r->skipped += report->skipped;
  r->scale = report->loss_scale;
  return ST_OK;
}

static int train(st_context* context, st_data* data, st_data* held_out, run* r) {
  char json[160];
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  st_trainer* trainer = NULL;
  st_evaluation evaluation;
  snprintf(json, sizeof json, "{\"precision\": \"%s\", \"batch\": 8, \"lr\": 0.001%s}", r->precision,
           strcmp(r->precision, "fp16") == 0 ? ", \"loss_scale_initial\": 4194304" : "");
  CHECK(st_model_builtin(context, "gpt", "{\"layers\": 2, \"width\": 64, \"heads\": 2, \"context\": 32}", 1, &model));
  CHECK(st_recipe_create(json, &recipe));
  CHECK(st_trainer_create(model, recipe, data, &trainer)); /* weights, moments and gradients are fp32 in all three */
  CHECK(st_trainer_run(trainer, STEPS, record, r));
  CHECK(st_evaluation_init(&evaluation, sizeof evaluation));
  CHECK(st_trainer_evaluate(trainer, held_out, &evaluation));
  r->validation = evaluation.loss;
  st_trainer_destroy(trainer);
  st_recipe_destroy(recipe);
  st_model_destroy(model);
  return 0;
}

int main(int argc, char** argv) {
  run runs[] = {{.precision = "fp32"}, {.precision = "bf16"}, {.precision = "fp16"}};
  if (argc < 2 || strcmp(argv[argc - 1], "--device") == 0) return fprintf(stderr, "usage: %s TEXT [--device NAME]\n", argv[0]), 2;
  st_context* context = NULL;
  st_context_options options;
  st_data *data = NULL, *training = NULL, *held_out = NULL;
  CHECK(st_context_options_init(&options, sizeof options));
  if (argc > 2 && strcmp(argv[argc - 2], "--device") == 0) options.device = argv[argc - 1]; /* --device NAME at the end */
  CHECK(st_context_create(&options, &context));
  CHECK(st_data_files(context, argv[1], "{\"context\": 32}", &data));
  CHECK(st_data_split(data, 0.1, 0, &training, &held_out));
  for (int i = 0; i < 3; ++i)
    if (train(context, training, held_out, &runs[i])) return 1;

  printf("%-12s %8s %8s %8s\n", "step", runs[0].precision, runs[1].precision, runs[2].precision);
  for (int k = 0; k < STEPS / EVERY; ++k)
    printf("%-12d %8.4f %8.4f %8.4f\n", (k + 1) * EVERY, runs[0].losses[k], runs[1].losses[k], runs[2].losses[k]);
  printf("%-12s %8.4f %8.4f %8.4f\n", "validation", runs[0].validation, runs[1].validation, runs[2].validation);
  printf("%-12s %8.0f %8.0f %8.0f\n", "loss scale", runs[0].scale, runs[1].scale, runs[2].scale);
  printf("%-12s %8d %8d %8d\n", "skipped", runs[0].skipped, runs[1].skipped, runs[2].skipped);

  st_data_destroy(held_out);
  st_data_destroy(training);
  st_data_destroy(data);
  st_context_destroy(context);
  for (int i = 0; i < 3; ++i) /* uniformly random bytes cost 5.5 nats; fp16 loses a little by its skipped steps */
    if (runs[i].validation > 4.5 || fabs(runs[i].validation / runs[0].validation - 1) > 0.05) return 1;
  return runs[0].skipped != 0 || runs[1].skipped != 0 || runs[2].skipped == 0;
}
