// A tensor: an array with an owner, passed between libraries (DLPack) without a copy.
#pragma once

#include <scaletrain/tensor.h>

#include <scaletrain/data.hpp>
#include <utility>
#include <vector>

namespace scaletrain {

/// Where a tensor is, in DLPack's words: kDLCPU (1), or kDLCUDA (2) and the number of the device.
struct DlpackDevice {
  int32_t type = 1, index = 0;
};

class Tensor : public detail::Handle<st_tensor, st_tensor_destroy> {
 public:
  /// Allocates the library's memory, all zero: the host's, or that of the context's device if it has its own.
  Tensor(const Context& context, DType dtype, const std::vector<int64_t>& dims) : Handle(detail::Access::host(context)) {
    done(st_tensor_create(context.get(), static_cast<st_dtype>(dtype), static_cast<int32_t>(dims.size()), dims.data(), out()));
  }
  /// Wraps the host's memory until release is called, once, when the tensor and every DLPack tensor of it are gone; not if this throws.
  static Tensor wrap(const Context& context, const View& memory, const ReleaseFunction& release) {
    Tensor tensor(detail::Access::host(context));
    auto loan = std::make_unique<detail::Loan>();
    loan->release = release;
    const st_view raw = memory.raw();
    const st_status status = st_tensor_wrap(context.get(), &raw, detail::Loan::end, loan.get(), tensor.out());
    if (status == ST_OK) static_cast<void>(loan.release());  // the library owns it, whatever done() throws
    tensor.done(status);
    return tensor;
  }
  /// Takes ownership, unless this throws.
  static Tensor from_dlpack(const Context& context, DLManagedTensor* managed) {
    Tensor tensor(detail::Access::host(context));
    tensor.done(st_tensor_from_dlpack(context.get(), managed, tensor.out()));
    return tensor;
  }
  /// The same for elements that `stream` writes before: the context's stream waits for it on the device. -1: no waiting.
  static Tensor from_dlpack(const Context& context, DLManagedTensor* managed, int64_t stream) {
    Tensor tensor(detail::Access::host(context));
    tensor.done(st_tensor_from_dlpack_on(context.get(), managed, stream, tensor.out()));
    return tensor;
  }
  /// The same memory, until its deleter is called. It may outlive the tensor and the context, but not ContextOptions::free if given.
  DLManagedTensor* to_dlpack() const {
    DLManagedTensor* managed = nullptr;
    done(st_tensor_to_dlpack(get(), &managed));
    return managed;
  }
  /// The same for a receiver that uses the memory on `stream`, which waits for the context's stream on the device. -1: no waiting.
  DLManagedTensor* to_dlpack(int64_t stream) const {
    DLManagedTensor* managed = nullptr;
    done(st_tensor_to_dlpack_on(get(), stream, &managed));
    return managed;
  }
  DlpackDevice dlpack_device() const {
    DlpackDevice device;
    done(st_tensor_dlpack_device(get(), &device.type, &device.index));
    return device;
  }
  /// The tensor's memory.
  View view() const {
    st_view raw{};
    done(st_tensor_view(get(), &raw));
    return View(raw);
  }

 private:
  explicit Tensor(const std::shared_ptr<detail::Host>& host) : Handle(host) {}
};

}  // namespace scaletrain
