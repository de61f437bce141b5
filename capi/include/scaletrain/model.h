/* A model: a graph and its parameters. */
#ifndef SCALETRAIN_MODEL_H
#define SCALETRAIN_MODEL_H

#include <scaletrain/graph.h>

ST_BEGIN

typedef struct st_model st_model;

/* Takes a copy of the graph. The first error of the graph's calls is returned here, named. ST_OUT_OF_MEMORY comes with need and supply,
 * before anything is touched. */
ST_API st_status st_model_create(st_graph* graph, int64_t seed, st_model** model);

/* name "gpt": {"layers":4,"width":128,"heads":4,"context":64,"vocabulary":256}, GPT-2's architecture, inputs "tokens" and
 * "targets" i32 [batch, context], output "logits". name "mlp": {"inputs":1,"hidden":[64,64],"outputs":1,"activation":"gelu","loss":"mse"},
 * inputs "x" and "y". json NULL: the defaults. */
ST_API st_status st_model_builtin(st_context* context, const char* name, const char* json, int64_t seed, st_model** model);
ST_API st_status st_model_destroy(st_model* model);

typedef struct st_parameter_info {
  uint32_t struct_size;
  st_dtype dtype;
  const char* name; /* owned by the model while it lives */
  int32_t rank;
  int32_t trainable;
  int64_t dims[8];
} st_parameter_info;

ST_API st_status st_parameter_info_init(st_parameter_info* info, size_t size);
ST_API st_status st_model_parameter_count(st_model* model, int64_t* count);
ST_API st_status st_model_parameter(st_model* model, int64_t index, st_parameter_info* info);

/* Copy a whole parameter out of or into the model; f32, of exactly its shape. Not while a step runs (ST_BUSY). */
ST_API st_status st_model_get(st_model* model, const char* name, const st_view* to);
ST_API st_status st_model_set(st_model* model, const char* name, const st_view* from);

/* All parameters as one safetensors file. Writing leaves the old file or the new one, whatever happens; reading needs every parameter and
 * no other, with its shape (any floating type) and changes nothing when one does not fit. */
ST_API st_status st_model_write_file(st_model* model, const char* path);
ST_API st_status st_model_read_file(st_model* model, const char* path);

ST_END
#endif
