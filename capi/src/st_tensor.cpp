#include <algorithm>
#include <array>

#include "context_object.h"
#include "dlpack_abi.h"
#include "guard.h"
#include "host_loan.h"
#include "tensor_object.h"
#include "views.h"

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

/// `device`: whose memory it is; null: the host's memory.
std::shared_ptr<TensorObject> tensor_over(const StridedLayout& layout, void* data, int64_t bytes, std::shared_ptr<void> owner,
                                          std::shared_ptr<Context> device) {
  auto object = std::make_shared<TensorObject>();
  object->layout = layout;
  object->data = data;
  object->bytes = bytes;
  object->owner = std::move(owner);
  object->device = std::move(device);
  return object;
}

st_dtype dtype_of(const char* call, const DLDataType& type) {
  const auto row = std::ranges::find_if(kTypes, [&](const TypeRow& r) { return r.code == type.code && r.bits == type.bits; });
  require(row != kTypes.end() && type.lanes == 1, Code::unsupported, call, ": type code ", type.code, " of ", type.bits, " bits and ",
          type.lanes, " lanes is not supported; convert it to f32, f64, bf16, f16, i32, i64, u8 or bool");
  return static_cast<st_dtype>(row->dtype);
}

DLDevice device_of(const TensorObject& tensor) {
  if (tensor.device == nullptr) return {kDlpackCpu, 0};
  const MemoryPlace place = tensor.device->backend().memory_place();
  return {place.type, place.index};
}

/// Whether a DLPack tensor is in the memory of a context's device; else it is in the host's. Throws unsupported for any other.
bool is_on_device(const char* call, const DLDevice& device, const Context& context) {
  const MemoryPlace place = context.backend().memory_place();
  if (device.device_type == kDlpackCpu || device.device_type == kDlpackCudaHost) return false;
  if (place.type == kDlpackCuda && device.device_type == place.type && device.device_id == place.index) return true;
  const std::string ours = place.type == kDlpackCuda ? text("that of ", device_name(context), ", kDLCUDA (2) ", place.index, ", and ") : "";
  fail(Code::unsupported, text(call, ": the tensor is on device ", device.device_id, " of type ", name_of_dlpack_device(device.device_type),
                               "; allowed is ", ours, "the host's memory, kDLCPU (1) and kDLCUDAHost (3): copy it to the host first"));
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

void end_export(DLManagedTensor* managed);

/// `stream` (null: the context's own): on which the tensor's elements are ready.
void take_dlpack(const char* call, st_context* context, DLManagedTensor* managed, const int64_t* stream, st_tensor** tensor) {
  given(tensor, call, "tensor");
  const auto c = peek(context)->context;
  const DLTensor& theirs = given(managed, call, "managed").dl_tensor;
  const bool on_device = is_on_device(call, theirs.device, *c);
  const StridedLayout layout =
      layout_of(text(call, ": the tensor"), dtype_of(call, theirs.dtype), theirs.ndim, theirs.shape, theirs.strides);
  check(theirs.data != nullptr || layout.bytes == 0, call, ": the tensor of shape ", layout.shape, " has no data (NULL)");
  auto* data = theirs.data == nullptr ? nullptr : static_cast<std::byte*>(theirs.data) + theirs.byte_offset;
  if (on_device) check_on_device(text(call, ": the tensor"), layout, data, *c);
  const auto loan = std::make_shared<HostLoan>(end_dlpack, managed);
  auto made = tensor_over(layout, data, layout.bytes, loan, on_device ? c : nullptr);
  if (on_device && stream != nullptr) c->host_order().connect(*stream, c->host_order().handle());
  hand_out(tensor, std::move(made));
  loan->accept();
}

/// `stream` (null: the context's own): on which the receiver will use the tensor.
void give_dlpack(const char* call, st_tensor* tensor, const int64_t* stream, DLManagedTensor** managed) {
  const auto t = peek(tensor);
  DLManagedTensor*& out = given(managed, call, "managed");
  const auto row = std::ranges::find(kTypes, t->layout.dtype, &TypeRow::dtype);
  auto made = std::make_unique<Export>();
  made->owner = t->owner;
  std::ranges::copy(t->layout.shape, made->dims.begin());
  made->strides = t->layout.strides;
  made->managed = {.dl_tensor = {.data = t->data,
                                 .device = device_of(*t),
                                 .ndim = t->layout.shape.rank(),
                                 .dtype = {row->code, row->bits, 1},
                                 .shape = made->dims.data(),
                                 .strides = made->strides.data(),  // newer readers do not accept NULL for row-major
                                 .byte_offset = 0},
                   .manager_ctx = made.get(),
                   .deleter = end_export};
  if (t->device && stream != nullptr) t->device->host_order().connect(t->device->host_order().handle(), *stream);
  out = &made.release()->managed;
}

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
    Backend& backend = c->backend();
    require(backend.is_host_memory() || device_number(*c) != 0, Code::unsupported, "st_tensor_create: ", backend.name(),
            " has memory of its own, which neither the host nor another library can use; use a context of the cpu");
    c->require_memory("st_tensor_create: the tensor", layout.bytes);
    const auto owned = std::make_shared<OwnedBuffer>(OwnedBuffer{c, backend.allocate(layout.bytes, MemoryRole::tensors)});
    const Address place = owned->buffer->data();
    void* const data = backend.is_host_memory() ? backend.in_host(place) : reinterpret_cast<void*>(place.at);
    hand_out(tensor, tensor_over(layout, data, layout.bytes, owned, backend.is_host_memory() ? nullptr : c));
  });
}

st_status st_tensor_wrap(st_context* context, const st_view* view, st_release_fn release, void* user, st_tensor** tensor) {
  return guard([&] {
    given(tensor, "st_tensor_wrap: tensor");
    const auto c = peek(context)->context;
    const StridedLayout layout = layout_of("st_tensor_wrap: view", given(view, "st_tensor_wrap: view"), c.get());
    const auto loan = std::make_shared<HostLoan>(release, user);
    hand_out(tensor, tensor_over(layout, view->data, view->bytes, loan, view->device == 0 ? nullptr : c));
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
    out.device = t->device ? device_number(*t->device) : 0;
    out.reserved = 0;
  });
}

st_status st_tensor_from_dlpack(st_context* context, DLManagedTensor* managed, st_tensor** tensor) {
  return guard([&] { take_dlpack("st_tensor_from_dlpack", context, managed, nullptr, tensor); });
}

st_status st_tensor_from_dlpack_on(st_context* context, DLManagedTensor* managed, int64_t stream, st_tensor** tensor) {
  return guard([&] { take_dlpack("st_tensor_from_dlpack_on", context, managed, &stream, tensor); });
}

st_status st_tensor_to_dlpack(st_tensor* tensor, DLManagedTensor** managed) {
  return guard([&] { give_dlpack("st_tensor_to_dlpack", tensor, nullptr, managed); });
}

st_status st_tensor_to_dlpack_on(st_tensor* tensor, int64_t stream, DLManagedTensor** managed) {
  return guard([&] { give_dlpack("st_tensor_to_dlpack_on", tensor, &stream, managed); });
}

st_status st_tensor_dlpack_device(st_tensor* tensor, int32_t* type, int32_t* index) {
  return guard([&] {
    const DLDevice device = device_of(*peek(tensor));
    given(type, "st_tensor_dlpack_device: type");
    given(index, "st_tensor_dlpack_device: index");
    *type = device.device_type;
    *index = device.device_id;
  });
}
