/* A tensor: an array with an owner, passed between libraries without a copy (DLPack, https://dmlc.github.io/dlpack). */
#ifndef SCALETRAIN_TENSOR_H
#define SCALETRAIN_TENSOR_H

#include <scaletrain/data.h>

ST_BEGIN

typedef struct st_tensor st_tensor;
struct DLManagedTensor; /* of dlpack.h */

/* Allocates memory from the context's allocator, 64-byte aligned and all zero. The host reads and writes it in place, so ST_UNSUPPORTED
 * where a context's memory is not the host's. */
ST_API st_status st_tensor_create(st_context* context, st_dtype dtype, int32_t rank, const int64_t* dims, st_tensor** tensor);
/* Wraps the host's memory (H) until release(user), which is called once, when the tensor and every DLPack tensor made from it are gone. It
 * is not called if this call fails. */
ST_API st_status st_tensor_wrap(st_context* context, const st_view* view, st_release_fn release, void* user, st_tensor** tensor);
ST_API st_status st_tensor_destroy(st_tensor* tensor);

/* The view's pointers are owned by the tensor and valid while it lives. */
ST_API st_status st_tensor_view(st_tensor* tensor, st_view* view);

/* Takes ownership of the DLManagedTensor: its deleter is called when the tensor ends, but not if this call fails. Host memory
 * only, kDLCPU and kDLCUDAHost (pinned): ST_UNSUPPORTED names any other device's type, so copy it to the host first. */
ST_API st_status st_tensor_from_dlpack(st_context* context, struct DLManagedTensor* managed, st_tensor** tensor);
/* Makes a DLManagedTensor (kDLCPU, device 0) over the same memory, which it keeps until its deleter is called; it may outlive the tensor
 * and its context. */
ST_API st_status st_tensor_to_dlpack(st_tensor* tensor, struct DLManagedTensor** managed);

ST_END
#endif
