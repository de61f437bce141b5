// Exposes a tensor's memory to Java. A DLPack of the tensor keeps the memory alive.
#pragma once

#include "dlpack.hpp"
#include "jreport.hpp"

namespace scaletrain::java {

struct EndLease {
  void operator()(DLManagedTensor* managed) const noexcept {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};

// Java holds these pointers as longs.
inline DLManagedTensor* managed_of(int64_t pointer) { return reinterpret_cast<DLManagedTensor*>(static_cast<intptr_t>(pointer)); }
inline int64_t number_of(DLManagedTensor* managed) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(managed)); }

/// A tensor's memory. Its dims are those of a lease of it, since another thread may close the tensor now.
inline View view_of(st_tensor* tensor, const DLManagedTensor& lease) {
  st_view raw{};
  scaletrain::check(st_tensor_view(tensor, &raw));
  raw.dims = lease.dl_tensor.shape;
  if (raw.strides != nullptr) raw.strides = lease.dl_tensor.strides;
  return View(raw);
}

/// Returns an ArrayType, a ByteBuffer from the first to the last element, a long[1] with the lease, which Java then owns, and a long[] with
/// the strides, empty if there are none.
inline jobjectArray shown(JNIEnv* env, const View& view, std::unique_ptr<DLManagedTensor, EndLease> lease) {
  const jobjectArray all = made(env, env->NewObjectArray(4, Machine::here().object, nullptr));
  env->SetObjectArrayElement(all, 0, new_type(env, view.dtype(), view.dims()));
  const st_view raw = view.raw();
  std::vector<int64_t> strides;
  const bool is_empty = view.size() == 0;
  int64_t reach = is_empty ? 0 : 1;
  for (int32_t i = 0; raw.strides != nullptr && i < raw.rank; ++i) {
    strides.push_back(raw.strides[i]);
    reach += is_empty ? 0 : (raw.dims[i] - 1) * raw.strides[i];
  }
  const View whole(view.dtype(), static_cast<const void*>(view.data()), {reach}, view.bytes());
  env->SetObjectArrayElement(all, 1, new_buffer(env, raw.strides == nullptr ? view : whole));
  env->SetObjectArrayElement(all, 3, new_longs(env, strides));
  env->SetObjectArrayElement(all, 2, new_longs(env, std::vector<int64_t>{number_of(lease.get())}));
  static_cast<void>(lease.release());
  return all;
}

}  // namespace scaletrain::java
