// Extensions of classes for Python only, and functions for scaletrain/*.py.

// A DLPack of the tensor keeps its memory, even after close().
%extend scaletrain::Tensor {
  int32_t dtype() {
    st_view raw{};
    scaletrain::check(st_tensor_view($self->get(), &raw));
    return raw.dtype;
  }
  PyObject* shape() {
    const std::unique_ptr<DLManagedTensor, void (*)(DLManagedTensor*)> managed(  // see memory()
        $self->to_dlpack(), [](DLManagedTensor* of) { of->deleter(of); });
    const DLTensor& tensor = managed->dl_tensor;
    const std::vector<int64_t> dims(tensor.shape, tensor.shape + tensor.ndim);
    const python::Gil gil;
    return python::to_python(dims);
  }
  PyObject* memory(bool writable) {
    DLManagedTensor* const managed = $self->to_dlpack();  // describes its own memory, since another thread may close the tensor now
    if (managed->dl_tensor.device.device_type != scaletrain::kDlpackCpu) {
      managed->deleter(managed);
      throw scaletrain::Error(scaletrain::Status::unsupported,
                              "memory: the tensor is in the memory of a device, which the program cannot read; pass it to a call, or as "
                              "DLPack to a library that can (torch.from_dlpack)");
    }
    const python::Gil gil;
    const scaletrain::View view = python::Array::view_of(managed->dl_tensor, "memory");
    return python::show(writable ? view : python::read_only(view), python::Object(), [managed] { managed->deleter(managed); });
  }
  PyObject* dlpack(int64_t stream) {
    DLManagedTensor* const managed = $self->to_dlpack(stream);
    const python::Gil gil;
    PyObject* const capsule = PyCapsule_New(managed, "dltensor", [](PyObject* of) {
      if (PyCapsule_IsValid(of, "dltensor") == 0) return;  // a consumer has taken ownership and renamed it
      auto* const held = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(of, "dltensor"));
      held->deleter(held);
    });
    if (capsule == nullptr) managed->deleter(managed);
    return capsule;
  }
}
// Takes ownership of the capsule's tensor.
%newobject scaletrain::tensor_from_capsule;
%inline %{
namespace scaletrain {
Tensor* tensor_from_capsule(const Context& context, PyObject* capsule, bool on_another, int64_t stream) {
  DLManagedTensor* managed = nullptr;
  {
    const python::Gil gil;
    managed = python::managed_of(capsule, "from_dlpack");
    PyCapsule_SetName(capsule, "used_dltensor");  // before the lock is released, so that no other thread takes it too
  }
  try {
    return new Tensor(on_another ? Tensor::from_dlpack(context, managed, stream) : Tensor::from_dlpack(context, managed));
  } catch (...) {
    const python::Gil gil;
    PyCapsule_SetName(capsule, "dltensor");  // not taken after all
    throw;
  }
}
/// The number of rows: the first dimension of the first array. Throws if there is none.
int64_t rows_in(const Views& arrays) {
  if (arrays.size() == 0) throw Error(Status::invalid_argument, "Data.arrays: at least one array is needed, got none");
  const NamedView& first = arrays[0];
  if (first.view.rank() == 0) throw Error(Status::invalid_argument, first.name + ": the array has rank 0; the first dimension must be the rows");
  return first.view.dim(0);
}
/// An object that keeps a batch that the library reads after the call. forward() and work() take it instead of the batch.
PyObject* keep(PyObject* batch) {
  const python::Gil gil;
  return python::Arrays::kept(batch);
}
/// The arrays of a pipeline's stage.
PyObject* new_stage_arrays() {
  const python::Gil gil;
  return python::new_stage_arrays();
}
/// Releases those that a run has left.
void release_stage_arrays(PyObject* of) {
  const python::Gil gil;
  const auto arrays = python::stage_arrays(of);
  for (const auto& [key, lent] : *arrays) lent.release();
  arrays->clear();
}
/// Registers the objects of the Python layer that native code looks up by name.
void give(PyObject* names) {
  const python::Gil gil;
  Py_INCREF(names);
  python::registry() = names;
}
/// Called at the end of the program.
void end() { python::end(); }
/// Called in the child of a fork.
void forked() { python::forked(); }
/// The view that the library has of an array: address, dtype, dims, strides, writable.
PyObject* describe(const View& of) {
  const python::Gil gil;
  const st_view raw = of.raw();
  const std::vector<int64_t> strides = raw.strides == nullptr ? std::vector<int64_t>() : std::vector<int64_t>(raw.strides, raw.strides + raw.rank);
  return Py_BuildValue("(NiNNN)", PyLong_FromVoidPtr(raw.data), static_cast<int>(raw.dtype), python::to_python(of.dims()),
                       python::to_python(strides), PyBool_FromLong(of.writable() ? 1 : 0));
}
}  // namespace scaletrain
%}
