/* A tensor: an array with an owner, passed between libraries without a copy (DLPack, https://dmlc.github.io/dlpack). */
#ifndef SCALETRAIN_TENSOR_H
#define SCALETRAIN_TENSOR_H

#include <scaletrain/data.h>

ST_BEGIN

typedef struct st_tensor st_tensor;
struct DLManagedTensor; /* of dlpack.h */

/* Allocates memory from the context's allocator, 64-byte aligned and all zero, which the host reads and writes in place. In a context of a
 * device of its own memory (cuda) it is in that, and the view's device is not 0. */
ST_API st_status st_tensor_create(st_context* context, st_dtype dtype, int32_t rank, const int64_t* dims, st_tensor** tensor);
/* Wraps the host's memory (H) until release(user), which is called once, when the tensor and every DLPack tensor made from it are gone. It
 * is not called if this call fails. */
ST_API st_status st_tensor_wrap(st_context* context, const st_view* view, st_release_fn release, void* user, st_tensor** tensor);
ST_API st_status st_tensor_destroy(st_tensor* tensor);

/* The view's pointers are owned by the tensor and valid while it lives. */
ST_API st_status st_tensor_view(st_tensor* tensor, st_view* view);

/* Takes ownership of the DLManagedTensor: its deleter is called when the tensor ends, but not if this call fails. It is in the host's
 * memory, kDLCPU or kDLCUDAHost (pinned), or in that of the context's device, kDLCUDA with its number; ST_UNSUPPORTED names any other. */
ST_API st_status st_tensor_from_dlpack(st_context* context, struct DLManagedTensor* managed, st_tensor** tensor);
/* Makes a DLManagedTensor over the same memory, which it keeps until its deleter is called; it may outlive the tensor and its context. */
ST_API st_status st_tensor_to_dlpack(st_tensor* tensor, struct DLManagedTensor** managed);
/* The device that a DLManagedTensor of it has: kDLCPU (1) and 0, or kDLCUDA (2) and its number. */
ST_API st_status st_tensor_dlpack_device(st_tensor* tensor, int32_t* type, int32_t* index);

/* The same for elements that another stream of the host writes before, or reads after, a cudaStream_t, or 1 or 2 as in DLPack: the
 * context's stream waits for `stream`, or `stream` for the context's, on the device. -1: no waiting, and so for a tensor in the host's
 * memory. */
ST_API st_status st_tensor_from_dlpack_on(st_context* context, struct DLManagedTensor* managed, int64_t stream, st_tensor** tensor);
ST_API st_status st_tensor_to_dlpack_on(st_tensor* tensor, int64_t stream, struct DLManagedTensor** managed);

ST_END
#endif
