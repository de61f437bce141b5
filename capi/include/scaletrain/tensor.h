/* A tensor: an array with an owner, to hand between libraries (DLPack, https://dmlc.github.io/dlpack) without a copy. */
#ifndef SCALETRAIN_TENSOR_H
#define SCALETRAIN_TENSOR_H

#include <scaletrain/data.h>

ST_BEGIN

typedef struct st_tensor st_tensor;
struct DLManagedTensor; /* dlpack.h's */

/* Memory of the library's (the context's allocator), 64-byte aligned, all zero. */
ST_API st_status st_tensor_create(st_context* context, st_dtype dtype, int32_t rank, const int64_t* dims, st_tensor** tensor);
/* The host's memory, held until release(user), which is called once, when the tensor and every DLPack made of it is gone; not when this
 * call fails. */
ST_API st_status st_tensor_wrap(st_context* context, const st_view* view, st_release_fn release, void* user, st_tensor** tensor);
ST_API st_status st_tensor_destroy(st_tensor* tensor);

/* Pointers in it are owned by the tensor while it lives. */
ST_API st_status st_tensor_view(st_tensor* tensor, st_view* view);

/* Takes the DLManagedTensor over: its deleter is called with the tensor's end; not when this call fails. CPU memory only. */
ST_API st_status st_tensor_from_dlpack(st_context* context, struct DLManagedTensor* managed, st_tensor** tensor);
/* A new DLManagedTensor over the same memory, which its deleter gives up; it may outlive the tensor and its context. */
ST_API st_status st_tensor_to_dlpack(st_tensor* tensor, struct DLManagedTensor** managed);

ST_END
#endif
