// Extensions of classes for C# only, and functions for ScaleTrain/*.cs.

%extend scaletrain::Context {
  void register_op_of(const std::string& name, void* op, int32_t outputs, bool has_backward) {
    $self->register_op(name, csharp::host_op(op, outputs, has_backward));
  }
}

// The address of a tensor's memory is valid while its handle is referenced. A DLPack of it is passed as an address.
%extend scaletrain::Tensor {
  scaletrain::Views memory() {
    const scaletrain::View view = $self->view();
    if (view.raw().strides != nullptr)
      throw scaletrain::Error(scaletrain::Status::unsupported,
                              "the array has strides that are not row-major without gaps, and the program would read other elements; copy "
                              "it to an array without gaps first");
    return scaletrain::Views({{"", view}});
  }
  /// The same for a tensor with any strides, which are left out.
  scaletrain::Views place() {
    const scaletrain::View view = $self->view();
    return scaletrain::Views({{"", scaletrain::View(view.dtype(), view.data(), view.dims(), view.bytes())}});
  }
  void* dlpack() { return $self->to_dlpack(); }
  void* dlpack_on(int64_t stream) { return $self->to_dlpack(stream); }
}
%newobject scaletrain::tensor_of_dlpack;
%newobject scaletrain::tensor_of_dlpack_on;
%inline %{
namespace scaletrain {
Tensor* tensor_of_dlpack(const Context& context, void* managed) {
  return new Tensor(Tensor::from_dlpack(context, static_cast<DLManagedTensor*>(managed)));
}
Tensor* tensor_of_dlpack_on(const Context& context, void* managed, int64_t stream) {
  return new Tensor(Tensor::from_dlpack(context, static_cast<DLManagedTensor*>(managed), stream));
}
/// Receives C#'s functions. Must be the first call.
void give(void* functions) { csharp::table() = *static_cast<const csharp::Table*>(functions); }
/// Called at the end of the program.
void end_of_runtime() { csharp::end_of_runtime(); }
/// Sets the reason why the callback that runs on this thread fails.
void say_why(const std::string& text) { st_callback_error(text.c_str()); }
/// Number of library threads that the runtime has registered.
int32_t guests() { return csharp::guests().load(); }
/// Runs one task of a parallel function.
void run_task(void* task, int64_t i) { csharp::run_task(task, i); }
}  // namespace scaletrain
%}
