/* A graph: a model as ops over values. A value is an id; 0 is invalid and propagates the first error. So a host may build a whole graph and
 * check only the status of st_model_create, which names the call that failed. st_features lists the ops with inputs, attributes and shapes
 * ("ops"); runtime/ir/ops.def defines what they compute.
 *
 * Range of numbers. Every op and optimizer treats f32, f64 and bf16 numbers below the normal range (2^-126; f64: 2^-1022) as zeros of their
 * sign, in inputs and in results; f16's subnormals count. An op that moves or selects elements may pass such a number on. A sum is infinite
 * or NaN if the sum of magnitudes exceeds fp32, except in sum, mean and the losses; norms take rows of any finite size. */
#ifndef SCALETRAIN_GRAPH_H
#define SCALETRAIN_GRAPH_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_graph st_graph;
typedef int32_t st_value;

#define ST_BATCH (-1)             /* an input's first dimension, bound by each call's data; -n is n times the batch */
#define ST_NONE (-2147483647 - 1) /* for an optional input of an op: none (0 would propagate an error) */

ST_API st_status st_graph_create(st_context* context, st_graph** graph);
ST_API st_status st_graph_destroy(st_graph* graph);

ST_API st_status st_graph_input(st_graph* graph, const char* name, st_dtype dtype, int32_t rank, const int64_t* dims, st_value* value);

/* Initial values of a parameter, a function of (seed, name, element) only, so equal everywhere. */
enum {
  ST_INIT_ZEROS = 0,
  ST_INIT_ONES = 1,
  ST_INIT_NORMAL = 2,  /* scale: standard deviation */
  ST_INIT_UNIFORM = 3, /* scale: half the width of the interval around 0 */
  ST_INIT_XAVIER = 4,  /* scale: gain (Glorot and Bengio 2010), uniform */
  ST_INIT_KAIMING = 5  /* scale: gain (He et al. 2015), normal over the inputs */
};

/* dims [in, out] for a matrix. The name is prefixed by the open scopes and must be new. */
ST_API st_status st_graph_parameter(st_graph* graph, const char* name, int32_t rank, const int64_t* dims, int32_t init, double scale,
                                    st_value* value);

/* Applies any op to n inputs. attributes: a JSON object or NULL. values: room for m results; may be the array of inputs. An op with several
 * results fills the first m; surplus room becomes 0. Operands have one dtype; only compare takes an i32 with an i64, and widens it. */
ST_API st_status st_graph_op(st_graph* graph, const char* op, int32_t n, const st_value* inputs, const char* attributes, int32_t m,
                             st_value* values);

/* The same with typed attributes, in any order and without text; the wrappers in ops.h call it. */
enum { ST_ATTRIBUTE_BOOL = 1, ST_ATTRIBUTE_INT = 2, ST_ATTRIBUTE_REAL = 3, ST_ATTRIBUTE_INTS = 4, ST_ATTRIBUTE_WORD = 5 };
/* Frozen, like st_view, because arrays of it are passed. */
typedef struct st_attribute {
  const char* name;
  int32_t type;
  int32_t count;   /* of integers */
  int64_t integer; /* bool: 0 or 1 */
  double real;
  const int64_t* integers;
  const char* word;
} st_attribute;
ST_API st_status st_graph_apply(st_graph* graph, const char* op, int32_t n, const st_value* inputs, int32_t attribute_count,
                                const st_attribute* attributes, int32_t m, st_value* values);

/* The type of a value. dims[0] < 0 is a multiple of the batch: -n is n times the batch. */
typedef struct st_value_info {
  uint32_t struct_size;
  st_dtype dtype;
  int32_t rank;
  int32_t reserved;
  int64_t dims[8];
} st_value_info;
ST_API st_status st_value_info_init(st_value_info* info, size_t size);
ST_API st_status st_graph_value(st_graph* graph, st_value value, st_value_info* info);

/* A parameter with the host's initial values (C): f32, any strides. trainable 0: gradients stop there, and no step changes it. */
ST_API st_status st_graph_parameter_values(st_graph* graph, const char* name, const st_view* values, int32_t trainable, st_value* value);

/* Prefixes the names that follow with "name.", and makes a block at which recompute, gathering and pipelines may cut. */
ST_API st_status st_graph_scope(st_graph* graph, const char* name);
ST_API st_status st_graph_scope_end(st_graph* graph);

/* st_trainer_evaluate reports outputs named "metric.*". There a scalar made of losses, as for st_graph_loss, gives their mean; a predictor
 * and st_trainer_forward give its sum over their rows. */
ST_API st_status st_graph_output(st_graph* graph, const char* name, st_value value);
/* A floating scalar, of shape []: a sum or difference of terms, numbers and values that do not depend on the batch; such values may also
 * multiply or divide terms. A step's loss is this formula over all its rows, however they are divided into micro-batches and ranks. A
 * term is
 * - the first result of cross_entropy, mse, huber or bce_with_logits: a sum, which stands for its mean over the second result, a count;
 * - a mean over all elements of a tensor with the batch; or a quotient of such sums or counts, whose divisor depends on no trained
 *   parameter.
 *
 * ST_INVALID_ARGUMENT: another function of terms; or a sum of terms whose counts depend on the data (labels, weights) and that differ in
 * targets, ignore_index or weights. Batch statistics inside the model, of rank 1 or more, are those of each micro-batch. */
ST_API st_status st_graph_loss(st_graph* graph, st_value value);

/* The graph as text, one node a line. (O) */
ST_API st_status st_graph_text(st_graph* graph, const char** text);

ST_END
#endif
