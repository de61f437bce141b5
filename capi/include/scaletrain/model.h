/* A model: a graph and its parameters. */
#ifndef SCALETRAIN_MODEL_H
#define SCALETRAIN_MODEL_H

#include <scaletrain/graph.h>
#include <scaletrain/pending.h>

ST_BEGIN

/* Of a model that ranks have in pieces (st_trainer_create_in_group: zero 3, and 1 and 2 in 16 bits of a context with late_parameters) what
 * reads all parameters is called by all ranks together. */
typedef struct st_model st_model;

/* Takes a copy of the graph. The first error of the graph's calls is returned here, named. ST_OUT_OF_MEMORY comes with need and supply,
 * before anything is touched. */
ST_API st_status st_model_create(st_graph* graph, int64_t seed, st_model** model);

/* json NULL: the defaults, which stand here.
 *   "gpt"   GPT-2's architecture, inputs "tokens" and "targets" i32 [batch, context], output "logits":
 *           {"layers":4,"width":128,"heads":4,"context":64,"vocabulary":256,"activation":"gelu_new","layer_norm_epsilon":1e-5,
 *            "scale_attn_weights":true,"scale_attn_by_inverse_layer_idx":false}
 *           activation by Hugging Face's words: gelu_new (with tanh), gelu (exact), relu, silu, tanh
 *   "gpt2"  the same, and json is the text of Hugging Face's config.json of a GPT-2. What "gpt" cannot be is refused with key and value;
 *           dropout rates, which are the recipe's, are logged
 *   "mlp"   {"inputs":1,"hidden":[64,64],"outputs":1,"activation":"gelu","loss":"mse"}, activation gelu (with tanh), relu, silu or tanh,
 *           inputs "x" f32 [batch, inputs] and "y" f32 [batch, outputs]; with loss cross_entropy, the only other one, outputs are classes
 *           and "y" is i32 [batch] */
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

/* A new model with the same graph and its own copy of the parameters. */
ST_API st_status st_model_clone(st_model* model, st_model** clone);
/* to += t (from - to), in f32, for every parameter: target networks (t = 1 - tau), averages; t 1 copies. Both have the same parameters. */
ST_API st_status st_model_blend(st_model* to, st_model* from, double t);
/* 32 hex digits: XXH3-128 over every parameter in name order (name, dtype, shape, bytes). Owned by the model until its next call. */
ST_API st_status st_model_digest(st_model* model, const char** hex);

/* Copy a whole parameter out of or into the model, of exactly its shape, any strides; converts from and to f32, f64, bf16 and f16. Not
 * while a step runs, nor while st_trainer_advance has left an update half done (ST_BUSY); a step that was begun may see values from before
 * and after a set. Setting refuses NaN and overlapping strides. */
ST_API st_status st_model_get(st_model* model, const char* name, const st_view* to);
ST_API st_status st_model_set(st_model* model, const char* name, const st_view* from);

/* All parameters as one safetensors file. Leaves the old file or the new one, whatever happens; links are followed, a file that was there
 * keeps its mode, and a device or a pipe is written directly. With pending, writing takes a copy of the weights as they are now and
 * returns; the file comes to be meanwhile. Of a model in pieces rank 0 alone writes, and the others' paths are passed over; all return when
 * it is done, or with its error (with pending: of the copy, which rank 0 has). */
ST_API st_status st_model_write_file(st_model* model, const char* path, st_pending** pending);

/* The same through a callback, front to back without seeking: memory, a socket, an object store. Anything but ST_OK from it ends the call
 * with ST_CALLBACK. */
typedef st_status (*st_write_fn)(void* user, const void* bytes, int64_t count);
ST_API st_status st_model_write(st_model* model, st_write_fn write, void* user);

/* Frozen, like st_view: an array of it is passed. */
typedef struct st_rename {
  const char* from; /* in the file: a name; "*", once, stands for any text: "h.*.ln_1.weight" */
  const char* to;   /* in the model, "*" standing for what from's stood for */
} st_rename;
typedef struct st_read_options {
  uint32_t struct_size;
  int32_t partial; /* 0: every parameter must be there and nothing else; 1: what fits by name is read, the rest is reported */
  int64_t rename_count;
  const st_rename* renames; /* the first that fits counts */
  int64_t name_count;
  const char* const* names; /* patterns of names as in the model, "block.*.mlp.*" (* any text, ? one character); what fits none of them is
                               passed over: not read, not missing, not unexpected. 0: all */
  int32_t overwrite; /* of st_checkpoint_load, others pass it over: 0: after an error no view has changed; 1: read once, so twice as fast,
                        and after an error in the data the views may hold a mixture */
  int32_t reserved;
} st_read_options;
ST_API st_status st_read_options_init(st_read_options* options, size_t size);

typedef struct st_read_report { /* texts are owned by the model until its next call */
  uint32_t struct_size;
  int32_t reserved;
  int64_t read;
  int64_t missing_count;    /* parameters of the model that the file does not have */
  int64_t unexpected_count; /* tensors of the file that the model does not have */
  const char* const* missing;
  const char* const* unexpected;
} st_read_report;
ST_API st_status st_read_report_init(st_read_report* report, size_t size);

/* Reads parameters from safetensors, of any floating type. path: a file, the model.safetensors.index.json of shards, or a folder that has a
 * model.safetensors or such an index; every shard is read. options NULL: strict, no renames. report may be NULL; it is filled also when
 * names did not fit. Nothing is changed unless all of it could be read. A trainer of the model,
 * made before or after, then trains from these weights. Errors name file and tensor:
 * ST_NOT_FOUND          a file, a shard or a parameter is not there
 * ST_CORRUPT            not as the format has it; a tensor in two shards, in none, or not in the one that the index says
 * ST_NOT_FINITE         NaN, as st_model_set refuses it; with tensor and first element
 * ST_INVALID_ARGUMENT   a tensor of another shape, also when partial; one of a dtype that is not floating. Tensors of the format's other
 *                       dtypes (I8, F8_E4M3, ..) are passed over unless a parameter asks for them */
ST_API st_status st_model_read_file(st_model* model, const char* path, const st_read_options* options, st_read_report* report);

/* Fills at most `room` bytes and says how many; 0 is the end. Anything but ST_OK ends the call with ST_CALLBACK. */
typedef st_status (*st_read_fn)(void* user, void* bytes, int64_t room, int64_t* count);
/* The same from a stream of one file, which is read front to back. */
ST_API st_status st_model_read(st_model* model, st_read_fn read, void* user, const st_read_options* options, st_read_report* report);

/* What such a path holds, of any dtype, without reading values (JSON, valid until this thread's next call):
 * {"files":[{"path":"m.safetensors","bytes":236,"metadata":{"format":"pt"}}],
 *  "tensors":[{"name":"w","dtype":"F32","shape":[2,2],"file":0,"begin":216,"end":232,"readable":true}, ..],"foreign":1}
 * begin and end are bytes of the file. readable false: of a dtype that no call reads, or of more than 8 dimensions; "foreign" counts these.
 */
ST_API st_status st_weights_inspect(const char* path, const char** json);

ST_END
#endif
