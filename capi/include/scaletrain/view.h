/* Views of arrays: the host's memory, described. Both structs are frozen, since arrays of them are passed: a field more would move the
 * second element. They have no struct_size and never grow; nor do st_field, st_attribute, st_op_type, st_rename and st_metric. */
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
  const int64_t* dims;    /* rank of them */
  const int64_t* strides; /* in elements, none negative; NULL: row-major without gaps */
  void* data;             /* of any alignment, but in st_gemm calls, which work where it lies: there a multiple of its element's size */
  int64_t bytes;          /* room behind data, at least what the dims need */
} st_view;

typedef struct st_named_view {
  const char* name;
  st_view view;
} st_named_view;

/* Copies the elements of `from` to `to`, of the same dims and whatever strides, as those of its dtype: for what a call takes in one dtype
 * only. Floating dtypes and integers (ST_BOOL too) become floating ones rounded to the nearest. Integers become integers where each fits:
 * ST_INVALID_ARGUMENT names one that does not, and those before it may be written. Floating ones do not become integers: ST_UNSUPPORTED. */
ST_API st_status st_view_convert(const st_view* from, const st_view* to);

ST_END
#endif
