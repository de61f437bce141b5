/* A model: a graph and its parameters. */
#ifndef SCALETRAIN_MODEL_H
#define SCALETRAIN_MODEL_H

#include <scaletrain/graph.h>
#include <scaletrain/pending.h>

ST_BEGIN

/* The trainer of a rank (st_trainer_create_in_group) shards its model over the ranks with zero 3, with zero 1 or 2 in 16 bits and
 * late_parameters, with stages and with tensor. Calls that read parameters come in pairs:
 * - Without a suffix, as st_model_get: this rank alone reads what it has. ST_WRONG_STATE, at once, if other ranks have parts of it; the
 *   message names the settings and the collective call.
 * - _collective: all ranks make the call, in the same order, and each gets the whole. Works for every model: if this rank has all of it,
 *   the call is the local one. An argument that one rank refuses is an error on all. A rank that does not make the call is named on the
 *   others at the communicator's deadline (ST_TIMEOUT, or ST_RANK_FAILED if it has ended). */
typedef struct st_model st_model;

/* Copies the graph. Returns the first error of the graph's calls, which names the call. ST_OUT_OF_MEMORY has the bytes needed and
 * available; nothing was changed. */
ST_API st_status st_model_create(st_graph* graph, int64_t seed, st_model** model);

/* json NULL: the defaults, which are shown here.
 *   "gpt"   GPT-2's architecture; inputs "tokens" and "targets" i32 [batch, context], output "logits":
 *           {"layers":4,"width":128,"heads":4,"context":64,"vocabulary":256,"activation":"gelu_new","layer_norm_epsilon":1e-5,
 *            "scale_attn_weights":true,"scale_attn_by_inverse_layer_idx":false}
 *           activation as Hugging Face names it: gelu_new (by tanh), gelu (exact), relu, silu, tanh
 *   "gpt2"  the same; json is the text of Hugging Face's config.json of a GPT-2. A setting that "gpt" does not support is refused with key
 *           and value; dropout rates are only logged, since they belong to the recipe
 *   "llama" Llama's architecture (RMS norms, rotary positions, grouped-query attention, SwiGLU); inputs and output as "gpt":
 *           {"layers":4,"width":128,"heads":4,"groups":0,"context":64,"vocabulary":256,"ffn":0,"rope_base":10000,"rms_norm_epsilon":1e-5,
 *            "tied_embedding":false}
 *           groups: heads of keys and values, 0: as many as heads; ffn: width between the MLP's products, 0: 8/3 width rounded up to a
 *           multiple of 256; tied_embedding: the head is the token embedding
 *   "llama-hf"  the same; json is the text of Hugging Face's config.json of a Llama, as for "gpt2". Refused are scaled rotary positions,
 *           biases, another activation than silu, a head_dim other than hidden_size / num_attention_heads
 *   "mlp"   {"inputs":1,"hidden":[64,64],"outputs":1,"activation":"gelu","loss":"mse"}; activation gelu (by tanh), relu, silu or tanh; loss
 *           mse or cross_entropy; inputs "x" f32 [batch, inputs], and "y" f32 [batch, outputs] or, for cross_entropy, i32 [batch] with
 *           outputs as classes */
ST_API st_status st_model_builtin(st_context* context, const char* name, const char* json, int64_t seed, st_model** model);
ST_API st_status st_model_destroy(st_model* model);

typedef struct st_parameter_info {
  uint32_t struct_size;
  st_dtype dtype;
  const char* name; /* valid while the model lives */
  int32_t rank;
  int32_t trainable;
  int64_t dims[8];
} st_parameter_info;

ST_API st_status st_parameter_info_init(st_parameter_info* info, size_t size);
ST_API st_status st_model_parameter_count(st_model* model, int64_t* count);
ST_API st_status st_model_parameter(st_model* model, int64_t index, st_parameter_info* info);

/* A new model with the same graph and its own copy of the parameters. */
ST_API st_status st_model_clone(st_model* model, st_model** clone);
ST_API st_status st_model_clone_collective(st_model* model, st_model** clone); /* whole on each rank */
/* to += t (from - to), in f32, for every parameter: for target networks (t = 1 - tau) and averages; t 1 copies. Both models have the same
 * parameters. */
ST_API st_status st_model_blend(st_model* to, st_model* from, double t);
/* 32 hex digits: XXH3-128 over every parameter in name order (name, dtype, shape, bytes). Owned by the model until its next call. */
ST_API st_status st_model_digest(st_model* model, const char** hex);
ST_API st_status st_model_digest_collective(st_model* model, const char** hex);

/* Copy a whole parameter out of or into the model. The view has exactly its shape and any strides; f32, f64, bf16 and f16 are converted.
 * ST_BUSY while a step runs, or an advance has left an update half done. A step that has begun may see values from before and after a set.
 * Set refuses NaN and overlapping strides; on a sharded model it takes this rank's elements of the view. */
ST_API st_status st_model_get(st_model* model, const char* name, const st_view* to);
ST_API st_status st_model_get_collective(st_model* model, const char* name, const st_view* to);
ST_API st_status st_model_set(st_model* model, const char* name, const st_view* from);

/* Writes all parameters as one safetensors file.
 * - Whatever happens, the path has the old file or the complete new one. Links are followed, an existing file keeps its mode, and a device
 *   or pipe is written directly.
 * - With pending the call copies the weights and returns; the file is written in the background.
 * - Collective, of a sharded model: rank 0 alone writes, and other ranks' paths are ignored. All ranks return when it is done, or with its
 *   error (with pending: when the copy is done, which only rank 0 has). */
ST_API st_status st_model_write_file(st_model* model, const char* path, st_pending** pending);
ST_API st_status st_model_write_file_collective(st_model* model, const char* path, st_pending** pending);

/* The same through a callback, front to back without seeking, for memory, a socket or an object store. Any status but ST_OK from it ends
 * the call with ST_CALLBACK. */
typedef st_status (*st_write_fn)(void* user, const void* bytes, int64_t count);
ST_API st_status st_model_write(st_model* model, st_write_fn write, void* user);
ST_API st_status st_model_write_collective(st_model* model, st_write_fn write, void* user); /* each rank gets the whole stream */

/* Frozen, like st_view, because arrays of it are passed. */
typedef struct st_rename {
  const char* from; /* name in the file; one "*" matches any text: "h.*.ln_1.weight" */
  const char* to;   /* name in the model; "*" is what that of `from` matched */
} st_rename;
typedef struct st_read_options {
  uint32_t struct_size;
  int32_t partial; /* 0: the names must match exactly. 1: reads what matches and reports the rest */
  int64_t rename_count;
  const st_rename* renames; /* the first match counts */
  int64_t name_count;
  const char* const* names; /* patterns of names in the model, "block.*.mlp.*" (* any text, ? one character); others are ignored: not read,
                             * not missing, not unexpected. 0: all */
  int32_t overwrite; /* only for st_checkpoint_load. 0: after an error no view has changed. 1: reads once, so twice as fast, but after an
                      * error in the data some views may have changed */
  int32_t reserved;
} st_read_options;
ST_API st_status st_read_options_init(st_read_options* options, size_t size);

typedef struct st_read_report { /* texts are owned by the model until its next call */
  uint32_t struct_size;
  int32_t reserved;
  int64_t read;
  int64_t missing_count;    /* parameters of the model that are not in the file */
  int64_t unexpected_count; /* tensors of the file that are not in the model */
  const char* const* missing;
  const char* const* unexpected;
} st_read_report;
ST_API st_status st_read_report_init(st_read_report* report, size_t size);

/* Reads parameters from safetensors, of any floating dtype. path: a file, a model.safetensors.index.json, or a folder with a
 * model.safetensors or such an index, whose shards are all read. options NULL: strict, no renames. report may be NULL; it is filled also if
 * names do not match. Nothing changes unless everything could be read. Trainers of the model, made before or after, then train from these
 * weights. Errors name file and tensor:
 *   ST_NOT_FOUND          a file, a shard or a parameter is missing
 *   ST_CORRUPT            not valid safetensors; a tensor in two shards, in none, or not in the one that the index names
 *   ST_NOT_FINITE         NaN, as in st_model_set; with tensor and first element
 *   ST_INVALID_ARGUMENT   another shape, also when partial; or a dtype that is not floating. Tensors of other dtypes (I8, F8_E4M3, ..) are
 *                         ignored unless a parameter needs them */
ST_API st_status st_model_read_file(st_model* model, const char* path, const st_read_options* options, st_read_report* report);

/* Writes at most `room` bytes to `bytes` and their number to `count`; 0 is the end. Any status but ST_OK ends the call with ST_CALLBACK. */
typedef st_status (*st_read_fn)(void* user, void* bytes, int64_t room, int64_t* count);
/* The same from a stream of one file, front to back. */
ST_API st_status st_model_read(st_model* model, st_read_fn read, void* user, const st_read_options* options, st_read_report* report);

/* Lists what such a path holds, of any dtype, without reading values (JSON, valid until this thread's next call):
 *   {"files":[{"path":"m.safetensors","bytes":236,"metadata":{"format":"pt"}}],
 *    "tensors":[{"name":"w","dtype":"F32","shape":[2,2],"file":0,"begin":216,"end":232,"readable":true}, ..],"foreign":1}
 * begin and end are byte offsets in the file. readable false: a dtype that no call reads, or more than 8 dimensions; "foreign" is their
 * number. */
ST_API st_status st_weights_inspect(const char* path, const char** json);

ST_END
#endif
