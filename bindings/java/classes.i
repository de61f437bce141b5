// Extensions of classes for Java only, and functions for org/scaletrain/internal.

// A DLPack of the tensor keeps its memory, even after close(), until end_lease().
%extend scaletrain::Tensor {
  int64_t to_dlpack() { return java::number_of($self->to_dlpack()); }
  int64_t dlpack_on(int64_t stream) { return java::number_of($self->to_dlpack(stream)); }
  /// Dtype, address, the lease, which Java then owns, and the dims.
  jlongArray place(JNIEnv* env) {
    std::unique_ptr<DLManagedTensor, java::EndLease> lease($self->to_dlpack());
    const scaletrain::View view = java::view_of($self->get(), *lease);
    if (view.raw().strides != nullptr)
      throw scaletrain::Error(scaletrain::Status::unsupported,
                              "Tensor.array: the tensor is in the memory of a device and is not row-major without gaps; copy it first");
    std::vector<int64_t> all = {static_cast<int64_t>(view.dtype()), static_cast<int64_t>(reinterpret_cast<intptr_t>(view.data())),
                                java::number_of(lease.get())};
    for (const int64_t dim : view.dims()) all.push_back(dim);
    const jlongArray described = java::new_longs(env, all);
    static_cast<void>(lease.release());
    return described;
  }
  /// An ArrayType, a ByteBuffer, the lease as a long[1], and the strides as a long[].
  jobjectArray memory(JNIEnv* env) {
    std::unique_ptr<DLManagedTensor, java::EndLease> lease($self->to_dlpack());
    const scaletrain::View view = java::view_of($self->get(), *lease);
    return java::shown(env, view, std::move(lease));
  }
}

// At its root a broadcast only reads the array, so it may be read-only, and a heap array is not copied back.
%extend scaletrain::Communicator {
  void broadcast_own(const scaletrain::View& from, int32_t root, const std::string& name) const { $self->broadcast(from, root, name); }
  scaletrain::Pending broadcast_own_async(const scaletrain::View& from, int32_t root, const std::string& name) const {
    return $self->broadcast_async(from, root, name);
  }
}
%newobject scaletrain::tensor_from_dlpack;
%newobject scaletrain::tensor_from_dlpack_on;
%inline %{
namespace scaletrain {
void end_lease(int64_t lease) { java::EndLease()(java::managed_of(lease)); }
/// Takes ownership of the DLManagedTensor.
Tensor* tensor_from_dlpack(const Context& context, int64_t pointer) {
  return new Tensor(Tensor::from_dlpack(context, java::managed_of(pointer)));
}

Tensor* tensor_from_dlpack_on(const Context& context, int64_t pointer, int64_t stream) {
  return new Tensor(Tensor::from_dlpack(context, java::managed_of(pointer), stream));
}

/// Address of element 0 of a direct buffer; 0 for any other buffer.
int64_t address_of(JNIEnv* env, jobject buffer) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(env->GetDirectBufferAddress(buffer)));
}
/// The view that the library has of an array: address, dtype, rank, writable, dims, strides.
jlongArray described(JNIEnv* env, const View& of) {
  const st_view raw = of.raw();
  std::vector<int64_t> all = {static_cast<int64_t>(reinterpret_cast<intptr_t>(raw.data)), raw.dtype, raw.rank, of.writable() ? 1 : 0};
  all.insert(all.end(), raw.dims, raw.dims + raw.rank);
  if (raw.strides != nullptr) all.insert(all.end(), raw.strides, raw.strides + raw.rank);
  return java::new_longs(env, all);
}
/// Runs one task of a parallel-for that has not returned yet.
void run_task(int64_t task, int64_t i) {
  (*reinterpret_cast<const std::function<void(int64_t)>*>(static_cast<intptr_t>(task)))(i);
}
/// Throws Status::unsupported if the loaded library has another version than the headers this file was built with.
void require_headers() { scaletrain::require(); }
/// Called by a shutdown hook.
void end() { java::end(); }
/// Whether native code refers to Java objects.
bool holds_objects() { return java::references().load() > 0; }
}  // namespace scaletrain
%}

%{
extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) { return java::Machine::here().load(vm) ? java::kVersion : JNI_ERR; }
extern "C" JNIEXPORT void JNICALL JNI_OnUnload(JavaVM*, void*) { java::Machine::here().unload(); }
%}

%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclasscode=%{
  static {
    NativeLibrary.require();
  }
%}

%include "java/native/entries.hpp"
%extend scaletrain::Graph {
  std::vector<scaletrain::Value> make(const std::string& name, const std::vector<scaletrain::Value>& inputs,
                                      const scaletrain::Attributes& attributes, int results) {
    return $self->apply(name, inputs, attributes.all(), results);
  }
}
%newobject scaletrain::Data::rows_of;
%extend scaletrain::Data {
  static scaletrain::Data* rows_of(const scaletrain::Context& context, int64_t rows, const scaletrain::Fields& fields,
                                   const scaletrain::Fill& fill) {
    return new scaletrain::Data(scaletrain::Data::callback(context, rows, fields.all(), fill.function));
  }
}
%extend scaletrain::Context {
  void add_op(const std::string& name, const scaletrain::HostOp& op, int outputs, bool is_differentiable) {
    scaletrain::HostOp whole = op;
    whole.outputs = outputs;
    if (!is_differentiable) whole.backward = nullptr;
    $self->register_op(name, whole);
  }
}
