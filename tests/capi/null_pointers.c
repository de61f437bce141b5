/* Every function with NULL for each of its pointers except handles (those: handle_calls.cpp), and a plain walk through the library as a
 * C99 program. */
#include <scaletrain/scaletrain.h>
#include <stdio.h>
#include <string.h>

int layout_holds(void); /* layout.c */

static int checks = 0, failures = 0;

/* Checks the status, and that the message names the call. */
static void expect(st_status wanted, st_status got, const char* call, int line) {
  char name[64];
  size_t length = strcspn(call, "(");
  ++checks;
  if (length >= sizeof name) length = sizeof name - 1;
  memcpy(name, call, length);
  name[length] = '\0';
  if (got == wanted && (wanted == ST_OK || strstr(st_last_error(), name) != NULL)) return;
  ++failures;
  fprintf(stderr, "null_pointers.c:%d: %s is %d, wanted %d; message: %s\n", line, call, (int)got, (int)wanted, st_last_error());
}

static void expect_number(int64_t wanted, int64_t got, const char* what, int line) {
  ++checks;
  if (got == wanted) return;
  ++failures;
  fprintf(stderr, "null_pointers.c:%d: %s: %ld, wanted %ld\n", line, what, (long)got, (long)wanted);
}

#define EXPECT(wanted, call) expect(wanted, call, #call, __LINE__)
#define WORKS(call) EXPECT(ST_OK, call)
/* The message says "<argument> is NULL", or what is at NULL. */
#define REFUSES(call) \
  (EXPECT(ST_INVALID_ARGUMENT, call), expect_number(1, strstr(st_last_error(), "NULL") != NULL, "NULL in: " #call, __LINE__))

static st_status on_token(void* user, int32_t token) {
  (void)user;
  (void)token;
  return ST_OK;
}

static st_status write_bytes(void* user, const void* bytes, int64_t count) {
  (void)user;
  (void)bytes;
  (void)count;
  return ST_OK;
}

static st_status read_bytes(void* user, void* bytes, int64_t room, int64_t* count) {
  (void)user;
  (void)bytes;
  (void)room;
  *count = 0;
  return ST_OK;
}

static void library_and_structs(void) {
  int64_t count = -1;
  REFUSES(st_version(NULL));
  REFUSES(st_features(NULL));
  REFUSES(st_weights_inspect(NULL, NULL));
  REFUSES(st_live_handles(NULL, NULL));
  WORKS(st_live_handles(NULL, &count));
  EXPECT(ST_INVALID_ARGUMENT, st_live_handles("nothing", &count));
  REFUSES(st_recipe_keys(NULL));
  REFUSES(st_last_error_info(NULL));
  REFUSES(st_memory_role_name(ST_MEMORY_OTHER, NULL));
  REFUSES(st_gemm_problem_init(NULL, sizeof(st_gemm_problem)));
  REFUSES(st_gemm_schedule_init(NULL, sizeof(st_gemm_schedule)));
  REFUSES(st_gemm_info_init(NULL, sizeof(st_gemm_info)));
  REFUSES(st_epilogue_init(NULL, sizeof(st_epilogue)));
  REFUSES(st_loss_scaler_options_init(NULL, sizeof(st_loss_scaler_options)));
  REFUSES(st_optimizer_report_init(NULL, sizeof(st_optimizer_report)));
  WORKS(st_require(ST_VERSION_MAJOR, ST_VERSION_MINOR));
  EXPECT(ST_UNSUPPORTED, st_require(ST_VERSION_MAJOR + 1, 0));
  EXPECT(ST_UNSUPPORTED, st_require(-1, 0));
}

static st_status fill_nothing(void* user, int64_t k, const int64_t* row_ids, int64_t n, const st_view* views) {
  (void)user;
  (void)k;
  (void)row_ids;
  (void)n;
  (void)views;
  return ST_OK;
}

static void arguments_of_context_and_graph(st_context* context) {
  const int64_t dims[] = {ST_BATCH, 2}, two[] = {2};
  float values[2] = {0, 0};
  st_view view = {ST_F32, 1, two, NULL, values, sizeof values};
  const char* text = NULL;
  st_graph* graph = NULL;
  st_model* model = NULL;
  st_value x = 0, y = 7;

  expect_number(0, st_op_gelu(NULL, 1, NULL), "value of a wrapper without a graph", __LINE__);
  EXPECT(ST_INVALID_HANDLE, st_graph_input(NULL, "x", ST_F32, 2, dims, &y));
  expect_number(0, y, "value of a failed st_graph_input", __LINE__);
  REFUSES(st_context_create(NULL, NULL));
  REFUSES(st_context_memory(context, NULL));
  REFUSES(st_context_stream(context, NULL));
  REFUSES(st_machine_calibrate(context, NULL, NULL));
  REFUSES(st_op_register(context, NULL, NULL, NULL));
  REFUSES(st_op_register(context, "square", NULL, NULL));
  REFUSES(st_graph_create(context, NULL));
  WORKS(st_graph_create(context, &graph));
  WORKS(st_graph_input(graph, "x", ST_F32, 2, dims, &x));
  REFUSES(st_graph_input(graph, NULL, ST_F32, 2, dims, &y));
  REFUSES(st_graph_input(graph, "z", ST_F32, 2, NULL, &y));
  REFUSES(st_graph_input(graph, "z", ST_F32, 2, dims, NULL));
  REFUSES(st_graph_parameter(graph, NULL, 1, dims + 1, ST_INIT_ZEROS, 1, &y));
  REFUSES(st_graph_parameter(graph, "w", 1, NULL, ST_INIT_ZEROS, 1, &y));
  REFUSES(st_graph_parameter(graph, "w", 1, dims + 1, ST_INIT_ZEROS, 1, NULL));
  REFUSES(st_graph_op(graph, NULL, 1, &x, NULL, 1, &y));
  REFUSES(st_graph_op(graph, "gelu", 1, NULL, NULL, 1, &y));
  REFUSES(st_graph_op(graph, "gelu", 1, &x, NULL, 1, NULL));
  REFUSES(st_graph_apply(graph, NULL, 1, &x, 0, NULL, 1, &y));
  REFUSES(st_graph_apply(graph, "gelu", 1, NULL, 0, NULL, 1, &y));
  REFUSES(st_graph_apply(graph, "gelu", 1, &x, 1, NULL, 1, &y));
  REFUSES(st_graph_apply(graph, "gelu", 1, &x, 0, NULL, 1, NULL));
  REFUSES(st_graph_value(graph, x, NULL));
  REFUSES(st_graph_parameter_values(graph, NULL, &view, 1, &y));
  REFUSES(st_graph_parameter_values(graph, "w", NULL, 1, &y));
  REFUSES(st_graph_parameter_values(graph, "w", &view, 1, NULL));
  view.dims = NULL;
  REFUSES(st_graph_parameter_values(graph, "w", &view, 1, &y));
  REFUSES(st_layer_linear(graph, NULL, x, "{\"outputs\": 1}", &y));
  EXPECT(ST_INVALID_ARGUMENT, st_layer_linear(graph, "l", x, NULL, &y));
  REFUSES(st_layer_linear(graph, "l", x, "{\"outputs\": 1}", NULL));
  REFUSES(st_layer_embedding(graph, NULL, x, NULL, &y));
  REFUSES(st_layer_norm(graph, NULL, x, NULL, &y));
  REFUSES(st_layer_attention(graph, NULL, x, NULL, &y));
  REFUSES(st_layer_mlp(graph, NULL, x, NULL, &y));
  REFUSES(st_layer_dropout(graph, NULL, x, NULL, &y));
  REFUSES(st_graph_scope(graph, NULL));
  REFUSES(st_graph_output(graph, NULL, x));
  REFUSES(st_graph_text(graph, NULL));
  WORKS(st_graph_text(graph, &text));
  REFUSES(st_model_create(graph, 0, NULL));
  expect(ST_INVALID_ARGUMENT, st_model_create(graph, 0, &model), "st_graph_input", __LINE__); /* the first wrong call is named */
  WORKS(st_graph_destroy(graph));
}

static void arguments_of_model(st_context* context, st_model* model) {
  const int64_t dims[] = {1, 64};
  float values[64] = {0};
  st_view view = {ST_F32, 2, dims, NULL, values, sizeof values};
  const char* const name = "layer.0.weight";
  st_pending* pending = NULL;

  REFUSES(st_model_builtin(context, NULL, NULL, 0, &model));
  REFUSES(st_model_builtin(context, "mlp", NULL, 0, NULL));
  REFUSES(st_model_parameter_count(model, NULL));
  REFUSES(st_model_parameter(model, 0, NULL));
  WORKS(st_model_get(model, name, &view));
  WORKS(st_model_set(model, name, &view));
  REFUSES(st_model_get(model, NULL, &view));
  REFUSES(st_model_get_collective(model, NULL, &view));
  REFUSES(st_model_get(model, name, NULL));
  REFUSES(st_model_get_collective(model, name, NULL));
  REFUSES(st_model_set(model, NULL, &view));
  REFUSES(st_model_set(model, name, NULL));
  view.dims = NULL;
  REFUSES(st_model_get(model, name, &view));
  REFUSES(st_model_get_collective(model, name, &view));
  view.dims = dims;
  view.data = NULL;
  REFUSES(st_model_get(model, name, &view));
  REFUSES(st_model_get_collective(model, name, &view));
  REFUSES(st_model_set(model, name, &view));
  REFUSES(st_model_clone(model, NULL));
  REFUSES(st_model_clone_collective(model, NULL));
  REFUSES(st_model_digest(model, NULL));
  REFUSES(st_model_digest_collective(model, NULL));
  REFUSES(st_model_write(model, NULL, NULL));
  REFUSES(st_model_write_collective(model, NULL, NULL));
  REFUSES(st_model_read(model, NULL, NULL, NULL, NULL));
  WORKS(st_model_write(model, write_bytes, NULL));
  expect(ST_CORRUPT, st_model_read(model, read_bytes, NULL, NULL, NULL), "the stream", __LINE__); /* it is empty */
  REFUSES(st_model_write_file(model, NULL, NULL));
  REFUSES(st_model_write_file_collective(model, NULL, NULL));
  REFUSES(st_model_write_file(model, NULL, &pending));
  REFUSES(st_model_write_file_collective(model, NULL, &pending));
  WORKS(st_model_write_file(model, "null_pointers.safetensors", &pending));
  REFUSES(st_pending_poll(pending, NULL));
  WORKS(st_pending_wait(pending, -1));
  WORKS(st_pending_destroy(pending));
  REFUSES(st_model_read_file(model, NULL, NULL, NULL));
}

static void arguments_of_data(st_context* context, const char* file) {
  st_data *data = NULL, *train = NULL, *validation = NULL;
  int64_t handles = 0, after = 0;

  REFUSES(st_data_files(context, NULL, "{\"context\": 4}", &data));
  REFUSES(st_data_files(context, file, NULL, &data));
  REFUSES(st_data_files(context, file, "{\"context\": 4}", NULL));
  WORKS(st_data_files(context, file, "{\"context\": 4}", &data));
  WORKS(st_live_handles("data", &handles));
  REFUSES(st_data_split(data, 0.5, 0, NULL, &validation));
  REFUSES(st_data_split(data, 0.5, 0, &train, NULL));
  WORKS(st_live_handles("data", &after));
  expect_number(handles, after, "handles after a failed st_data_split", __LINE__);
  REFUSES(st_data_rows(data, NULL));
  REFUSES(st_data_vocabulary(data, NULL));
  REFUSES(st_data_bigram_loss(data, data, NULL));
  WORKS(st_data_destroy(data));
}

static void arguments_of_host_data(st_context* context) {
  const int64_t dims[] = {2};
  float values[2] = {0, 0};
  st_named_view array = {"x", {ST_F32, 1, dims, NULL, values, sizeof values}};
  st_field field = {"x", ST_F32, 0, NULL};
  st_data* data = NULL;

  REFUSES(st_data_arrays(context, 2, 1, NULL, NULL, NULL, &data));
  REFUSES(st_data_arrays(context, 2, 1, &array, NULL, NULL, NULL));
  WORKS(st_data_arrays(context, 2, 1, &array, NULL, NULL, &data)); /* no release callback */
  WORKS(st_data_destroy(data));
  array.view.dims = NULL;
  REFUSES(st_data_arrays(context, 2, 1, &array, NULL, NULL, &data));
  array.view.dims = dims;
  array.view.data = NULL;
  REFUSES(st_data_arrays(context, 2, 1, &array, NULL, NULL, &data));
  array.name = NULL;
  REFUSES(st_data_arrays(context, 2, 1, &array, NULL, NULL, &data));

  REFUSES(st_data_callback(context, 2, 1, NULL, fill_nothing, NULL, NULL, &data));
  REFUSES(st_data_callback(context, 2, 1, &field, NULL, NULL, NULL, &data));
  REFUSES(st_data_callback(context, 2, 1, &field, fill_nothing, NULL, NULL, NULL));
  field.name = NULL;
  REFUSES(st_data_callback(context, 2, 1, &field, fill_nothing, NULL, NULL, &data));
}

static void arguments_of_tensor(st_context* context) {
  const int64_t dims[] = {2};
  float values[2] = {0, 0};
  st_view view = {ST_F32, 1, dims, NULL, values, sizeof values};
  st_tensor* tensor = NULL;

  REFUSES(st_tensor_create(context, ST_F32, 1, NULL, &tensor));
  REFUSES(st_tensor_create(context, ST_F32, 1, dims, NULL));
  REFUSES(st_tensor_wrap(context, NULL, NULL, NULL, &tensor));
  REFUSES(st_tensor_wrap(context, &view, NULL, NULL, NULL));
  REFUSES(st_tensor_from_dlpack(context, NULL, &tensor));
  REFUSES(st_tensor_from_dlpack_on(context, NULL, 1, &tensor));
  WORKS(st_tensor_wrap(context, &view, NULL, NULL, &tensor));
  REFUSES(st_tensor_view(tensor, NULL));
  REFUSES(st_tensor_to_dlpack(tensor, NULL));
  REFUSES(st_tensor_to_dlpack_on(tensor, 1, NULL));
  REFUSES(st_tensor_dlpack_device(tensor, NULL, NULL));
  WORKS(st_tensor_destroy(tensor));
  view.data = NULL;
  REFUSES(st_tensor_wrap(context, &view, NULL, NULL, &tensor));
}

static void arguments_of_recipe(st_recipe* recipe) {
  const char* text = NULL;
  REFUSES(st_recipe_create(NULL, NULL));
  REFUSES(st_recipe_set(recipe, NULL, "1"));
  REFUSES(st_recipe_set(recipe, "lr", NULL));
  REFUSES(st_recipe_get(recipe, NULL, &text));
  REFUSES(st_recipe_get(recipe, "lr", NULL));
  REFUSES(st_recipe_json(recipe, NULL));
}

static void arguments_of_trainer(st_model* model, st_recipe* recipe) {
  const int64_t dims[] = {8, 1};
  float x[8] = {0}, y[8] = {0};
  st_named_view batch[] = {{"x", {ST_F32, 2, dims, NULL, x, sizeof x}}, {"y", {ST_F32, 2, dims, NULL, y, sizeof y}}};
  st_trainer* trainer = NULL;
  st_evaluation evaluation;
  const st_named_view* outputs = NULL;
  const char* text = NULL;
  int64_t m = 0;

  REFUSES(st_trainer_create(model, recipe, NULL, NULL));
  WORKS(st_trainer_create(model, recipe, NULL, &trainer)); /* data is optional */
  WORKS(st_trainer_step(trainer, 2, batch, NULL));         /* so is the report */
  EXPECT(ST_INVALID_ARGUMENT, st_trainer_step(trainer, 2, NULL, NULL));
  batch[0].name = NULL;
  REFUSES(st_trainer_step(trainer, 2, batch, NULL));
  batch[0].name = "x";
  batch[0].view.dims = NULL;
  REFUSES(st_trainer_step(trainer, 2, batch, NULL));
  batch[0].view.dims = dims;
  batch[0].view.data = NULL;
  expect(ST_INVALID_ARGUMENT, st_trainer_step(trainer, 2, batch, NULL), "\"x\" has no data", __LINE__);
  expect(ST_WRONG_STATE, st_trainer_step(trainer, 0, NULL, NULL), "step", __LINE__); /* the trainer has no data */

  WORKS(st_evaluation_init(&evaluation, sizeof evaluation));
  REFUSES(st_trainer_evaluate(trainer, NULL, NULL));
  REFUSES(st_trainer_evaluate_collective(trainer, NULL, NULL));
  REFUSES(st_trainer_evaluate_average(trainer, NULL, NULL));
  REFUSES(st_trainer_evaluate_average_collective(trainer, NULL, NULL));
  REFUSES(st_trainer_average(trainer, NULL, NULL));
  REFUSES(st_trainer_average_collective(trainer, NULL, NULL));
  REFUSES(st_trainer_average(trainer, "w", NULL));
  REFUSES(st_trainer_average_collective(trainer, "w", NULL));
  expect(ST_WRONG_STATE, st_trainer_use_average(trainer), "ema_decay", __LINE__);
  REFUSES(st_trainer_digest(trainer, NULL));
  REFUSES(st_trainer_digest_collective(trainer, NULL));
  REFUSES(st_trainer_plan(trainer, NULL));
  REFUSES(st_trainer_explain(trainer, NULL));
  REFUSES(st_trainer_timeline(trainer, NULL));
  REFUSES(st_trainer_forecast(trainer, NULL, NULL));
  REFUSES(st_trainer_log(trainer, NULL));
  EXPECT(ST_WRONG_STATE, st_trainer_log_end(trainer, 0));
  REFUSES(st_trainer_write_report(trainer, NULL, NULL));
  REFUSES(st_trainer_advance(trainer, 0, NULL, 0, NULL, NULL));
  REFUSES(st_trainer_forward(trainer, 0, NULL, NULL, &outputs));
  REFUSES(st_trainer_forward(trainer, 0, NULL, &m, NULL));
  REFUSES(st_trainer_forward_into(trainer, 0, NULL, 1, NULL));
  REFUSES(st_trainer_backward(trainer, 1, NULL));
  REFUSES(st_trainer_gradient(trainer, NULL, NULL));
  REFUSES(st_trainer_gradient_collective(trainer, NULL, NULL));
  REFUSES(st_trainer_set(trainer, NULL, "1"));
  REFUSES(st_trainer_set(trainer, "lr", NULL));
  WORKS(st_trainer_set_schedule(trainer, NULL, NULL, NULL)); /* the recipe's */
  REFUSES(st_trainer_get(trainer, NULL, &text));
  REFUSES(st_trainer_get(trainer, "lr", NULL));
  WORKS(st_trainer_destroy(trainer));
}

static void arguments_of_predictor(st_context* context) {
  const int32_t token = 1;
  st_model* gpt = NULL;
  st_predictor* predictor = NULL;
  WORKS(st_model_builtin(context, "gpt", "{\"layers\":1,\"width\":8,\"heads\":1,\"context\":4}", 0, &gpt));
  REFUSES(st_predictor_create(gpt, NULL, NULL));
  REFUSES(st_predictor_create_collective(gpt, NULL, NULL));
  WORKS(st_predictor_create(gpt, NULL, &predictor));
  WORKS(st_predictor_generate(predictor, 1, &token, NULL, on_token, NULL)); /* no options: the defaults */
  REFUSES(st_predictor_run(predictor, 1, NULL, 0, NULL));
  REFUSES(st_predictor_run(predictor, 0, NULL, 1, NULL));
  WORKS(st_predictor_refresh(predictor));
  REFUSES(st_predictor_generate(predictor, 1, NULL, NULL, on_token, NULL));
  EXPECT(ST_INVALID_ARGUMENT, st_predictor_generate(predictor, 0, &token, NULL, on_token, NULL));
  REFUSES(st_predictor_generate(predictor, 1, &token, NULL, NULL, NULL));
  WORKS(st_predictor_destroy(predictor));
  WORKS(st_model_destroy(gpt));
}

static void arguments_of_gemm(st_context* context) {
  const int64_t dims[] = {2, 2};
  float values[4] = {0, 0, 0, 0}, product[4];
  const st_view view = {ST_F32, 2, dims, NULL, values, sizeof values}, c = {ST_F32, 2, dims, NULL, product, sizeof product};
  st_gemm_problem problem;
  st_gemm* gemm = NULL;
  st_packed* packed = NULL;
  WORKS(st_gemm_problem_init(&problem, sizeof problem));
  problem.m = problem.n = problem.k = 2;
  REFUSES(st_gemm_plan_create(context, NULL, NULL, &gemm));
  REFUSES(st_gemm_plan_create(context, &problem, NULL, NULL));
  WORKS(st_gemm_plan_create(context, &problem, NULL, &gemm)); /* no schedule: choose */
  REFUSES(st_gemm_plan_info(gemm, NULL));
  REFUSES(st_gemm_pack(gemm, NULL, &packed));
  REFUSES(st_gemm_pack(gemm, &view, NULL));
  WORKS(st_gemm_pack(gemm, &view, &packed));
  REFUSES(st_gemm_repack(packed, NULL));
  REFUSES(st_gemm_run(gemm, 1, NULL, &view, 0, &c, NULL));
  REFUSES(st_gemm_run(gemm, 1, &view, NULL, 0, &c, NULL));
  REFUSES(st_gemm_run(gemm, 1, &view, &view, 0, NULL, NULL));
  WORKS(st_gemm_run(gemm, 1, &view, &view, 0, &c, NULL)); /* the epilogue is optional */
  REFUSES(st_gemm_run_packed(gemm, 1, NULL, packed, 0, &c, NULL));
  REFUSES(st_gemm_run_packed(gemm, 1, &view, packed, 0, NULL, NULL));
  WORKS(st_packed_destroy(packed));
  WORKS(st_gemm_plan_destroy(gemm));
}

static void arguments_of_plan(st_context* context, st_recipe* recipe) {
  st_model* gpt = NULL;
  st_plan* plan = NULL;
  WORKS(st_model_builtin(context, "gpt", "{\"layers\":1,\"width\":8,\"heads\":1,\"context\":4}", 0, &gpt));
  REFUSES(st_plan_create(gpt, recipe, "{\"machine\":\"h200\"}", NULL));
  WORKS(st_plan_create(gpt, recipe, "{\"machine\":\"h200\"}", &plan));
  REFUSES(st_plan_json(plan, NULL));
  REFUSES(st_plan_text(plan, NULL));
  REFUSES(st_plan_report(plan, NULL));
  REFUSES(st_plan_trace(plan, NULL));
  REFUSES(st_plan_recipe(plan, NULL));
  WORKS(st_plan_destroy(plan));
  WORKS(st_model_destroy(gpt));
}

static void arguments_of_schedule(void) {
  st_schedule* schedule = NULL;
  REFUSES(st_schedule_create(NULL, NULL));
  WORKS(st_schedule_create(NULL, &schedule)); /* the defaults */
  REFUSES(st_schedule_at(schedule, 0, NULL));
  WORKS(st_schedule_destroy(schedule));
}

static void arguments_of_sampler(void) {
  st_distributed_sampler* sampler = NULL;
  int64_t rows[2], own, all;
  REFUSES(st_distributed_sampler_create(4, NULL, NULL));
  WORKS(st_distributed_sampler_create(4, NULL, &sampler)); /* the defaults */
  REFUSES(st_distributed_sampler_next(sampler, 2, NULL, &own, &all));
  REFUSES(st_distributed_sampler_next(sampler, 2, rows, NULL, &all));
  REFUSES(st_distributed_sampler_next(sampler, 2, rows, &own, NULL));
  REFUSES(st_distributed_sampler_cursor(sampler, NULL));
  WORKS(st_distributed_sampler_destroy(sampler));
}

static st_status nothing(void* user, const st_stage_work* work) { return user == NULL && work != NULL ? ST_OK : ST_INTERNAL; }

static void arguments_of_pipeline(st_context* context) {
  const st_op_type type = {ST_F32, 1, {4}};
  st_pipeline_callbacks callbacks;
  st_communicator* alone = NULL;
  st_pipeline* pipeline = NULL;
  REFUSES(st_pipeline_callbacks_init(NULL, sizeof callbacks));
  WORKS(st_pipeline_callbacks_init(&callbacks, sizeof callbacks));
  callbacks.forward = callbacks.backward_input = nothing;
  WORKS(st_communicator_local(context, 1, NULL, &alone));
  REFUSES(st_pipeline_create(alone, NULL, 1, &type, &type, &callbacks, NULL, &pipeline));
  REFUSES(st_pipeline_create(alone, "1f1b", 1, NULL, &type, &callbacks, NULL, &pipeline));
  REFUSES(st_pipeline_create(alone, "1f1b", 1, &type, NULL, &callbacks, NULL, &pipeline));
  REFUSES(st_pipeline_create(alone, "1f1b", 1, &type, &type, NULL, NULL, &pipeline));
  REFUSES(st_pipeline_create(alone, "1f1b", 1, &type, &type, &callbacks, NULL, NULL));
  WORKS(st_pipeline_create(alone, "1f1b", 1, &type, &type, &callbacks, NULL, &pipeline));
  REFUSES(st_pipeline_schedule(pipeline, 1, NULL));
  WORKS(st_pipeline_run(pipeline, 1));
  WORKS(st_pipeline_destroy(pipeline));
  WORKS(st_communicator_destroy(alone));
}

static void arguments_of_data_parallel(st_context* context) {
  const int64_t dims[] = {2};
  float values[2] = {0, 0};
  const st_named_view gradient = {NULL, {ST_F32, 1, dims, NULL, values, sizeof values}}; /* unnamed: named by position */
  st_communicator* alone = NULL;
  st_data_parallel* data_parallel = NULL;
  WORKS(st_communicator_local(context, 1, NULL, &alone));
  REFUSES(st_data_parallel_create(alone, 1, &gradient, NULL, NULL));
  REFUSES(st_data_parallel_create(alone, 1, NULL, NULL, &data_parallel));
  WORKS(st_data_parallel_create(alone, 1, &gradient, NULL, &data_parallel)); /* the defaults */
  WORKS(st_data_parallel_destroy(data_parallel));
  WORKS(st_communicator_destroy(alone));
}

static void arguments_of_sharded_optimizer(st_context* context) {
  const int64_t dims[] = {2};
  float weight[2] = {0, 0}, values[2] = {0, 0};
  const st_view gradient = {ST_F32, 1, dims, NULL, values, sizeof values};
  const st_named_view unnamed = {NULL, {ST_F32, 1, dims, NULL, weight, sizeof weight}}; /* unnamed: named by position */
  const st_named_view* state = NULL;
  st_communicator* alone = NULL;
  st_sharded_optimizer* sharded = NULL;
  int64_t n = 0;
  WORKS(st_communicator_local(context, 1, NULL, &alone));
  REFUSES(st_sharded_optimizer_create(alone, NULL, 1, NULL, NULL, &sharded));
  REFUSES(st_sharded_optimizer_create(alone, NULL, 1, &unnamed, NULL, NULL));
  WORKS(st_sharded_optimizer_create(alone, NULL, 1, &unnamed, NULL, &sharded)); /* no json, no options: defaults */
  REFUSES(st_sharded_optimizer_gradient_ready(sharded, 0, NULL));
  REFUSES(st_sharded_optimizer_step(sharded, 1, NULL, NULL));
  WORKS(st_sharded_optimizer_step(sharded, 1, &gradient, NULL)); /* the result is optional */
  REFUSES(st_sharded_optimizer_keep_copies(sharded, 1, NULL));
  WORKS(st_sharded_optimizer_keep_copies(sharded, 0, NULL));
  REFUSES(st_sharded_optimizer_set(sharded, NULL, "1"));
  REFUSES(st_sharded_optimizer_set(sharded, "lr", NULL));
  REFUSES(st_sharded_optimizer_gather_state(sharded, 0, NULL, &state));
  REFUSES(st_sharded_optimizer_gather_state(sharded, 0, &n, NULL));
  WORKS(st_sharded_optimizer_gather_state(sharded, 0, &n, &state));
  expect_number(3, n, "step and two moments", __LINE__);
  REFUSES(st_sharded_optimizer_load_state(sharded, 1, NULL));
  WORKS(st_sharded_optimizer_destroy(sharded));
  WORKS(st_communicator_destroy(alone));
}

static void arguments_of_loss_scaler(st_context* context) {
  const int64_t dims[] = {2};
  float values[2] = {0, 0};
  const st_view view = {ST_F32, 1, dims, NULL, values, sizeof values};
  st_loss_scaler* scaler = NULL;
  double scale = 0;
  int32_t flag = 0;
  REFUSES(st_loss_scaler_create(context, NULL, NULL));
  WORKS(st_loss_scaler_create(context, NULL, &scaler)); /* no options: defaults */
  REFUSES(st_loss_scaler_scale(scaler, NULL));
  WORKS(st_loss_scaler_scale(scaler, &scale));
  REFUSES(st_loss_scaler_unscale(scaler, 1, NULL, &flag));
  REFUSES(st_loss_scaler_unscale(scaler, 1, &view, NULL));
  WORKS(st_loss_scaler_unscale(scaler, 1, &view, &flag));
  REFUSES(st_loss_scaler_step(scaler, NULL));
  WORKS(st_loss_scaler_step(scaler, &flag));
  WORKS(st_loss_scaler_update(scaler, NULL)); /* the result is optional */
  REFUSES(st_loss_scaler_state(scaler, NULL));
  REFUSES(st_loss_scaler_restore(scaler, NULL));
  WORKS(st_loss_scaler_destroy(scaler));
}

static void arguments_of_optimizer(st_context* context) {
  const int64_t dims[] = {2};
  float weight[2] = {0, 0}, values[2] = {0, 0};
  const st_view gradient = {ST_F32, 1, dims, NULL, values, sizeof values};
  const st_named_view unnamed = {NULL, {ST_F32, 1, dims, NULL, weight, sizeof weight}};
  const st_named_view* state = NULL;
  st_optimizer* optimizer = NULL;
  int64_t n = 0;
  REFUSES(st_clip_norm(context, 1, NULL, 1, NULL));
  REFUSES(st_clip_norm(context, 1, &gradient, 0, NULL)); /* nothing to do */
  WORKS(st_clip_norm(context, 1, &gradient, 1, NULL));   /* the result is optional */
  WORKS(st_clip_norm(context, 0, NULL, 1, NULL));
  REFUSES(st_optimizer_create(context, NULL, 1, NULL, &optimizer));
  REFUSES(st_optimizer_create(context, NULL, 1, &unnamed, NULL));
  WORKS(st_optimizer_create(context, NULL, 1, &unnamed, &optimizer)); /* no json: defaults */
  REFUSES(st_optimizer_step(optimizer, 1, NULL, NULL));
  WORKS(st_optimizer_step(optimizer, 1, &gradient, NULL)); /* the result is optional */
  REFUSES(st_optimizer_keep_copies(optimizer, 1, NULL));
  WORKS(st_optimizer_keep_copies(optimizer, 0, NULL));
  REFUSES(st_optimizer_set(optimizer, NULL, "1"));
  REFUSES(st_optimizer_set(optimizer, "lr", NULL));
  REFUSES(st_optimizer_state_views(optimizer, NULL, &state));
  REFUSES(st_optimizer_state_views(optimizer, &n, NULL));
  WORKS(st_optimizer_state_views(optimizer, &n, &state));
  expect_number(3, n, "step and two moments", __LINE__);
  WORKS(st_optimizer_destroy(optimizer));
}

static void arguments_of_accumulator(st_context* context) {
  const int64_t dims[] = {2};
  float values[2] = {0, 0};
  const st_view gradient = {ST_F32, 1, dims, NULL, values, sizeof values};
  st_accumulator* accumulator = NULL;
  int64_t n = 0;
  const st_named_view* state = NULL;
  REFUSES(st_accumulator_create(context, 1, 1, NULL, &accumulator));
  REFUSES(st_accumulator_create(context, 1, 1, &gradient, NULL));
  WORKS(st_accumulator_create(context, 1, 1, &gradient, &accumulator));
  REFUSES(st_accumulator_should_step(accumulator, NULL));
  REFUSES(st_accumulator_weight(accumulator, NULL));
  REFUSES(st_accumulator_state_views(accumulator, NULL, &state));
  REFUSES(st_accumulator_state_views(accumulator, &n, NULL));
  WORKS(st_accumulator_destroy(accumulator));
}

/* Only reads, so that nothing is written: the folder of the file that this program is given. */
static void arguments_of_checkpoint(st_context* context, st_model* model, st_recipe* recipe, const char* file) {
  const int64_t dims[] = {2};
  float values[2] = {0, 0};
  const st_named_view view = {"a", {ST_F32, 1, dims, NULL, values, sizeof values}};
  char folder[4096];
  st_checkpoint_options options;
  st_checkpoint* checkpoint = NULL;
  st_trainer* trainer = NULL;
  const char* text = NULL;
  snprintf(folder, sizeof folder, "%s", file);
  *strrchr(folder, '/') = '\0';
  WORKS(st_checkpoint_options_init(&options, sizeof options));
  options.read_only = 1;
  REFUSES(st_checkpoint_create(context, NULL, &options, &checkpoint));
  REFUSES(st_checkpoint_create(context, folder, &options, NULL));
  WORKS(st_checkpoint_create(context, folder, &options, &checkpoint));
  REFUSES(st_checkpoint_save(checkpoint, 1, 1, NULL, NULL, NULL));
  EXPECT(ST_WRONG_STATE, st_checkpoint_save(checkpoint, 1, 1, &view, NULL, NULL)); /* valid except for read_only */
  REFUSES(st_checkpoint_load(checkpoint, NULL, 1, NULL, NULL, NULL));
  expect(ST_NOT_FOUND, st_checkpoint_load(checkpoint, NULL, 1, &view, NULL, NULL), "checkpoint", __LINE__); /* there is none */
  REFUSES(st_checkpoint_list(checkpoint, NULL));
  REFUSES(st_checkpoint_inspect(checkpoint, NULL, NULL));
  REFUSES(st_checkpoint_verify(checkpoint, NULL, NULL));
  REFUSES(st_checkpoint_hash(checkpoint, NULL, NULL));
  expect(ST_NOT_FOUND, st_checkpoint_hash(checkpoint, NULL, &text), "checkpoint", __LINE__);
  REFUSES(st_checkpoint_reshard(checkpoint, NULL, NULL, 2));
  REFUSES(st_checkpoint_export(checkpoint, NULL, NULL, 0));
  REFUSES(st_checkpoint_progress(checkpoint, NULL));
  WORKS(st_trainer_create(model, recipe, NULL, &trainer));
  WORKS(st_trainer_save_every(trainer, NULL, 0, 0)); /* NULL: stop saving */
  expect(ST_NOT_FOUND, st_model_load(model, checkpoint, NULL, NULL, NULL), "checkpoint", __LINE__);
  WORKS(st_trainer_destroy(trainer));
  WORKS(st_checkpoint_destroy(checkpoint));
}

int main(int argc, char** argv) {
  int64_t live = -1;
  st_context* context = NULL;
  st_model* model = NULL;
  st_recipe* recipe = NULL;
  if (argc != 2) return 2;

  library_and_structs();
  WORKS(st_context_create(NULL, &context));
  WORKS(st_model_builtin(context, "mlp", NULL, 0, &model));
  WORKS(st_recipe_create(NULL, &recipe));
  arguments_of_context_and_graph(context);
  arguments_of_model(context, model);
  arguments_of_data(context, argv[1]);
  arguments_of_host_data(context);
  arguments_of_tensor(context);
  arguments_of_gemm(context);
  arguments_of_loss_scaler(context);
  arguments_of_optimizer(context);
  arguments_of_accumulator(context);
  arguments_of_recipe(recipe);
  arguments_of_plan(context, recipe);
  arguments_of_schedule();
  arguments_of_sampler();
  arguments_of_data_parallel(context);
  arguments_of_pipeline(context);
  arguments_of_sharded_optimizer(context);
  arguments_of_trainer(model, recipe);
  arguments_of_predictor(context);
  arguments_of_checkpoint(context, model, recipe, argv[1]);
  WORKS(st_recipe_destroy(recipe));
  WORKS(st_model_destroy(model));
  WORKS(st_context_destroy(context));

  /* Calls that failed because of a NULL left no handles. */
  WORKS(st_live_handles(NULL, &live));
  expect_number(0, live, "live handles at the end", __LINE__);
  printf("%d checks, %d failed\n", checks, failures);
  return layout_holds() && checks > 100 && failures == 0 ? 0 : 1;
}
