/* An op of the host's own: used by its name like every other op, on the host's memory, forward and backward by callback. */
#ifndef SCALETRAIN_HOST_OP_H
#define SCALETRAIN_HOST_OP_H

#include <scaletrain/graph.h>

ST_BEGIN

/* Frozen, like st_view: an array of it is passed to the shape callback. */
typedef struct st_op_type {
  st_dtype dtype;
  int32_t rank;
  int64_t dims[8]; /* < 0: that many times the batch; callbacks pass it on */
} st_op_type;

/* Types of the m outputs from the n inputs'. Called while a graph is built (with dims < 0 for the batch) and when it is planned (without);
 * must be a pure function. */
typedef st_status (*st_op_shape_fn)(void* user, int32_t n, const st_op_type* inputs, int32_t m, st_op_type* outputs);
/* Row-major views, borrowed during the call; outputs are to be filled whole. One call at a time for a trainer, several for predictors. */
typedef st_status (*st_op_forward_fn)(void* user, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs);
/* d_inputs[i] is to be filled whole, or has data NULL where no gradient is wanted; d_outputs[i] has data NULL where outputs[i] is not
 * floating. */
typedef st_status (*st_op_backward_fn)(void* user, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs,
                                       const st_view* d_outputs, const st_view* d_inputs);

typedef struct st_op_callbacks {
  uint32_t struct_size;
  int32_t outputs; /* m, 1 to 8; default 1 */
  st_op_shape_fn shape;
  st_op_forward_fn forward;
  st_op_backward_fn backward; /* NULL: not differentiable, and a model that needs its gradient is refused */
} st_op_callbacks;

ST_API st_status st_op_callbacks_init(st_op_callbacks* callbacks, size_t size);

/* From now on st_graph_op and st_graph_apply on graphs of this context take `name`, without attributes and with at most 32 inputs. A name
 * is a letter and then letters, digits, _ . or -, 64 at most; one of ops.def, or one that is registered already, is refused. `user` must
 * live as long as the context and all that was made of it. Anything but ST_OK from a callback ends the call that ran it with ST_CALLBACK;
 * the state is that of the last whole step. Callbacks run on the calling thread, in its floating-point mode and with nothing of ours
 * locked; a call on the handle that they run in is ST_BUSY. */
ST_API st_status st_op_register(st_context* context, const char* name, const st_op_callbacks* callbacks, void* user);

ST_END
#endif
