#include <algorithm>
#include <array>

#include "context_object.h"
#include "dlpack_abi.h"
#include "guard.h"
#include "host_loan.h"
#include "model/host_bytes.h"
#include "tensor_object.h"

using namespace st;
using namespace st::capi;

namespace {

// Constants of dlpack.h.
enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

struct TypeRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr std::array<TypeRow, 8> kTypes = {{{DType::f32, kFloat, 32},
                                            {DType::f64, kFloat, 64},
                                            {DType::bf16, kBfloat, 16},
                                            {DType::f16, kFloat, 16},
                                            {DType::i32, kInt, 32},
                                            {DType::i64, kInt, 64},
                                            {DType::u8, kUInt, 8},
                                            {DType::boolean, kBool, 8}}};

/// A buffer of the context's memory. It may outlive every handle, so it keeps its context alive.
struct OwnedBuffer {
  std::shared_ptr<Context> context;
  std::unique_ptr<Buffer> buffer;
};

std::shared_ptr<TensorObject> tensor_over(const StridedLayout& layout, void* data, int64_t bytes, std::shared_ptr<void> owner) {
  auto object = std::make_shared<TensorObject>();
  object->layout = layout;
  object->data = data;
  object->bytes = bytes;
  object->owner = std::move(owner);
  return object;
}

st_dtype dtype_of(const DLDataType& type) {
  const auto row = std::ranges::find_if(kTypes, [&](const TypeRow& r) { return r.code == type.code && r.bits == type.bits; });
  require(row != kTypes.end() && type.lanes == 1, Code::unsupported, "st_tensor_from_dlpack: type code ", type.code, " of ", type.bits,
          " bits and ", type.lanes, " lanes is not supported; convert it to f32, f64, bf16, f16, i32, i64, u8 or bool");
  return static_cast<st_dtype>(row->dtype);
}

void end_dlpack(void* user) {
  auto* managed = static_cast<DLManagedTensor*>(user);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

/// An exported tensor: what the DLManagedTensor points to, and a share of the memory.
struct Export {
  DLManagedTensor managed{};
  std::array<int64_t, kMaxDims> dims{}, strides{};
  std::shared_ptr<void> owner;
  LibraryHold hold;  // end_export() may be called after the last handle is gone
};

Parting ended(const DLManagedTensor* managed) noexcept {
  const OnTheWayOut way;
  delete static_cast<Export*>(managed->manager_ctx);
  return way.part(ST_OK);
}

void end_export(DLManagedTensor* managed) { leave(ended(managed)); }

}  // namespace

st_status st_tensor_create(st_context* context, st_dtype dtype, int32_t rank, const int64_t* dims, st_tensor** tensor) {
  return guard([&] {
    given(tensor, "st_tensor_create: tensor");
    const auto c = peek(context)->context;
    const StridedLayout layout = layout_of("st_tensor_create: the tensor", dtype, rank, dims, nullptr);
    require_in_place(c->backend(), "st_tensor_create: the tensor's memory is given");
    c->require_memory("st_tensor_create: the tensor", layout.bytes);
    const auto owned = std::make_shared<OwnedBuffer>(OwnedBuffer{c, c->backend().allocate(layout.bytes, MemoryRole::tensors)});
    hand_out(tensor, tensor_over(layout, c->backend().in_host(owned->buffer->data()), layout.bytes, owned));
  });
}

st_status st_tensor_wrap(st_context* context, const st_view* view, st_release_fn release, void* user, st_tensor** tensor) {
  return guard([&] {
    given(tensor, "st_tensor_wrap: tensor");
    peek(context);
    const StridedLayout layout = layout_of("st_tensor_wrap: view", given(view, "st_tensor_wrap: view"));
    const auto loan = std::make_shared<HostLoan>(release, user);
    hand_out(tensor, tensor_over(layout, view->data, view->bytes, loan));
    loan->accept();
  });
}

st_status st_tensor_destroy(st_tensor* tensor) { return drop(tensor); }

st_status st_tensor_view(st_tensor* tensor, st_view* view) {
  return guard([&] {
    const auto t = peek(tensor);
    st_view& out = given(view, "st_tensor_view: view");
    out.dtype = static_cast<st_dtype>(t->layout.dtype);
    out.rank = t->layout.shape.rank();
    out.dims = t->layout.shape.begin();
    out.strides = t->layout.compact ? nullptr : t->layout.strides.data();
    out.data = t->data;
    out.bytes = t->bytes;
    out.device = 0;
    out.reserved = 0;
  });
}

st_status st_tensor_from_dlpack(st_context* context, DLManagedTensor* managed, st_tensor** tensor) {
  return guard([&] {
    given(tensor, "st_tensor_from_dlpack: tensor");
    peek(context);
    const DLTensor& theirs = given(managed, "st_tensor_from_dlpack: managed").dl_tensor;
    if (const int32_t device = theirs.device.device_type; device != kDlpackCpu && device != kDlpackCudaHost)
      fail(Code::unsupported,
           text("st_tensor_from_dlpack: the tensor is on device ", theirs.device.device_id, " of type ", name_of_dlpack_device(device),
                "; allowed is the host's memory, kDLCPU (1) and kDLCUDAHost (3): copy it to the host first"));
    const StridedLayout layout =
        layout_of("st_tensor_from_dlpack: the tensor", dtype_of(theirs.dtype), theirs.ndim, theirs.shape, theirs.strides);
    check(theirs.data != nullptr || layout.bytes == 0, "st_tensor_from_dlpack: the tensor of shape ", layout.shape, " has no data (NULL)");
    auto* data = theirs.data == nullptr ? nullptr : static_cast<std::byte*>(theirs.data) + theirs.byte_offset;
    const auto loan = std::make_shared<HostLoan>(end_dlpack, managed);
    hand_out(tensor, tensor_over(layout, data, layout.bytes, loan));
    loan->accept();
  });
}

st_status st_tensor_to_dlpack(st_tensor* tensor, DLManagedTensor** managed) {
  return guard([&] {
    const auto t = peek(tensor);
    DLManagedTensor*& out = given(managed, "st_tensor_to_dlpack: managed");
    const auto row = std::ranges::find(kTypes, t->layout.dtype, &TypeRow::dtype);
    auto made = std::make_unique<Export>();
    made->owner = t->owner;
    std::ranges::copy(t->layout.shape, made->dims.begin());
    made->strides = t->layout.strides;
    made->managed = {.dl_tensor = {.data = t->data,
                                   .device = {kDlpackCpu, 0},
                                   .ndim = t->layout.shape.rank(),
                                   .dtype = {row->code, row->bits, 1},
                                   .shape = made->dims.data(),
                                   .strides = made->strides.data(),  // newer readers do not accept NULL for row-major
                                   .byte_offset = 0},
                     .manager_ctx = made.get(),
                     .deleter = end_export};
    out = &made.release()->managed;
  });
}
