/* An op of the host: used by name like any other op, on the host's memory, with forward and backward as callbacks. */
#ifndef SCALETRAIN_HOST_OP_H
#define SCALETRAIN_HOST_OP_H

#include <scaletrain/graph.h>

ST_BEGIN

/* Frozen, like st_view, because arrays of it are passed to the shape callback. */
typedef struct st_op_type {
  st_dtype dtype;
  int32_t rank;
  int64_t dims[8]; /* -n: n times the batch; callbacks pass it on */
} st_op_type;

/* Computes the types of m outputs from those of n inputs. Called while a graph is built (with dims < 0 for the batch) and when it is
 * planned (without). Must be a pure function. */
typedef st_status (*st_op_shape_fn)(void* user, int32_t n, const st_op_type* inputs, int32_t m, st_op_type* outputs);
/* Views are row-major and (B); fill the outputs completely. One call at a time for each rank of a trainer, several for predictors. */
typedef st_status (*st_op_forward_fn)(void* user, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs);
/* Fill d_inputs[i] completely; its data is NULL if no gradient is needed. d_outputs[i] has data NULL if outputs[i] is not floating. */
typedef st_status (*st_op_backward_fn)(void* user, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs,
                                       const st_view* d_outputs, const st_view* d_inputs);

typedef struct st_op_callbacks {
  uint32_t struct_size;
  int32_t outputs; /* m, 1 to 8; default 1 */
  st_op_shape_fn shape;
  st_op_forward_fn forward;
  st_op_backward_fn backward; /* NULL: not differentiable; a model that needs its gradient is refused */
} st_op_callbacks;

ST_API st_status st_op_callbacks_init(st_op_callbacks* callbacks, size_t size);

/* Adds `name` to the ops that st_graph_op and st_graph_apply take on graphs of this context, without attributes and with at most 32 inputs.
 * - name: a letter, then letters, digits, _ . or -, at most 64 in all. Names of ops.def and names registered before are refused.
 * - user must live as long as the context and everything made from it.
 * - Callbacks run on the calling thread, in its floating-point mode, with no lock of the library held; of ranks that are threads of one
 *   trainer, on each rank's own thread. A call on the handle that they run in is ST_BUSY. Any status but ST_OK ends the call that ran it
 *   with ST_CALLBACK; the state is that of the last whole step.
 * - With stages, the ranks of its scope's stage call an op; of one outside of scopes, those that make the last value it reads: of a loss,
 *   the last part's, for each micro-batch between its forward and its backward. Each rank along the tensor axis calls it, on whole
 *   inputs. */
ST_API st_status st_op_register(st_context* context, const char* name, const st_op_callbacks* callbacks, void* user);

ST_END
#endif
