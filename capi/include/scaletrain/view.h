/* Views: descriptions of arrays, each in the memory of the host or of one device. Both structs are frozen, because arrays of them are
 * passed and a new field would move the second element: they have no struct_size and never grow. So are st_field, st_attribute, st_op_type,
 * st_rename and st_metric. */
#ifndef SCALETRAIN_VIEW_H
#define SCALETRAIN_VIEW_H

#include <scaletrain/error.h>

ST_BEGIN

typedef int32_t st_dtype;
enum {
  ST_F32 = 1,
  ST_F64 = 2,
  ST_BF16 = 3,
  ST_F16 = 4,
  ST_I32 = 5,
  ST_I64 = 6,
  ST_U8 = 7,
  ST_BOOL = 8 /* one byte, 0 or 1 */
};

typedef struct st_view {
  st_dtype dtype;
  int32_t rank;           /* at most 8 */
  const int64_t* dims;    /* `rank` of them */
  const int64_t* strides; /* in elements, not negative; NULL: row-major without gaps */
  void* data;             /* any alignment, unless a call requires that of the element, as st_gemm, which works in place */
  int64_t bytes;          /* size of the memory at data; at least what dims and strides need */
  int32_t device;         /* 0: the host's memory; n >= 1: that of device n - 1 of the context's kind of device. See below */
  int32_t reserved;       /* 0 */
} st_view;

/* Name the fields, or set all to zero first, so that device and reserved are 0: {.dtype = ST_F32, .rank = 2, .dims = dims, .data = x, ..}.
 * A call that takes a view refuses, by ST_INVALID_ARGUMENT and before it reads or writes anything, a device that its context does not have.
 * Every call takes the host's memory. In a context of device "cuda:1" these take that device's memory too, as device 2:
 * - batches of st_trainer_step, _advance, _forward, _forward_into and its outputs, gradients for _backward; views of st_predictor_run,
 *   st_model_get, st_model_set, st_trainer_gradient and st_trainer_average, which convert no dtypes there; st_tensor_wrap
 * - row-major without gaps; batches and inputs are not searched for NaN
 * - in the order of the host's stream (st_context_use_stream)
 * All others take 0 only: copy the array to the host first. A view that the library gives, also to a callback, has 0, but for that of an
 * st_tensor in a device's memory. */

typedef struct st_named_view {
  const char* name;
  st_view view;
} st_named_view;

/* Copies and converts the elements of `from` into `to`: same dims, any strides, any dtypes.
 * - Any dtype to a floating one: rounded to nearest.
 * - Integer or ST_BOOL to integer or ST_BOOL: every value must fit. ST_INVALID_ARGUMENT names one that does not; elements before it may
 *   have been written.
 * - Floating to integer: ST_UNSUPPORTED. */
ST_API st_status st_view_convert(const st_view* from, const st_view* to);

ST_END
#endif
