// What classes have for C# alone, and functions for ScaleTrain/*.cs.

%extend scaletrain::Context {
  void register_op_of(const std::string& name, void* op, int32_t outputs, bool has_backward) {
    $self->register_op(name, csharp::host_op(op, outputs, has_backward));
  }
}

// A tensor's memory is where it says as long as its handle is held; a DLPack of it is an address of C's.
%extend scaletrain::Tensor {
  scaletrain::Views memory() { return scaletrain::Views({{"", $self->view()}}); }
  void* dlpack() { return $self->to_dlpack(); }
}
%newobject scaletrain::tensor_of_dlpack;
%inline %{
namespace scaletrain {
Tensor* tensor_of_dlpack(const Context& context, void* managed) {
  return new Tensor(Tensor::from_dlpack(context, static_cast<DLManagedTensor*>(managed)));
}
/// Before any other call: C#'s functions.
void give(void* functions) { csharp::table() = *static_cast<const csharp::Table*>(functions); }
/// At the program's end.
void end_of_runtime() { csharp::end_of_runtime(); }
/// Why the callback fails that this thread is in.
void say_why(const std::string& text) { st_callback_error(text.c_str()); }
/// Threads of ours that the runtime knows.
int32_t guests() { return csharp::guests().load(); }
/// One task of a parallel function's.
void run_task(void* task, int64_t i) { csharp::run_task(task, i); }
}  // namespace scaletrain
%}
