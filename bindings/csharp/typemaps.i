// Conversion of values between C# and C++.
// - The classes generated here are internal: users see ScaleTrain/*.cs.
// - An object is a SafeHandle, which a running call references.
// - Numbers are passed as such, arrays in place (native/array.hpp), everything else as bytes (native/record.hpp).
// - Exceptions of callbacks and errors of the library are thrown after the call has returned to C# (ScaleTrain/Failure.cs).
// - SWIG's own callbacks are not used.
%{
#include "csharp/native/callback.hpp"

namespace csharp = scaletrain::csharp;

#define SWIG_CSharpSetPendingExceptionArgument(code, message, parameter) csharp::fail(scaletrain::Status::invalid_argument, message, scaletrain::ErrorInfo())
%}

#pragma SWIG nowarn=844  // Failure.Check() throws

%pragma(csharp) moduleclassmodifiers="internal static class"
%pragma(csharp) imclassclassmodifiers="internal static class"
%typemap(csclassmodifiers) SWIGTYPE, SWIGTYPE *, SWIGTYPE &, SWIGTYPE &&, SWIGTYPE [] "internal sealed class"
%typemap(csclassmodifiers) enum SWIGTYPE "internal enum"
%typemap(csinterfaces) SWIGTYPE ""

%exception {
  csharp::is_of_csharp() = true;
  try {
    $action
  } catch (...) {
    csharp::set_current_error();
    return $null;
  }
}
// Converts an argument before the call, with the same error handling.
%define %converted(code...)
  try {
    code
  } catch (...) {
    csharp::set_current_error();
    return $null;
  }
%enddef

// Objects. The proxy does not delete its object: closing the handle does, after the last running call has returned.
%nodefaultdtor;
%typemap(csdispose) SWIGTYPE ""
%typemap(csdisposing) SWIGTYPE ""
%typemap(csbody) SWIGTYPE %{
  internal readonly NativeHandle handle;
  internal NativeHandle swigCPtr { get { return handle.Open; } }
  private static readonly Deleter deleter = $modulePINVOKE.$csclassname_end;

  internal $csclassname(global::System.IntPtr made, bool owned) { handle = new NativeHandle(made, owned ? deleter : null); }
%}
%typemap(csconstruct) SWIGTYPE %{: this($imcall, true) { Failure.Check(); }
%}
%typemap(imtype, out="global::System.IntPtr") SWIGTYPE, SWIGTYPE *, SWIGTYPE & "NativeHandle"
%typemap(csin) SWIGTYPE, SWIGTYPE *, SWIGTYPE & "$csinput.swigCPtr"
%typemap(in) SWIGTYPE & %{ $1 = ($1_ltype)$input; %}
%typemap(csout) SWIGTYPE, SWIGTYPE *, SWIGTYPE & {
    global::System.IntPtr made;
    try { made = $imcall; } catch (global::System.ObjectDisposedException) { throw Failure.Closed(); }
    Failure.Check();
    return new $csclassname(made, true);
  }
%define %ended(Noun)
%extend scaletrain::Noun {
  static void end(void* object) { delete static_cast<scaletrain::Noun*>(object); }
}
%enddef
%ended(Accumulator)
%ended(Checkpoint)
%ended(CheckpointOptions)
%ended(Communicator)
%ended(CommunicatorOptions)
%ended(Context)
%ended(ContextOptions)
%ended(Data)
%ended(DataSplit)
%ended(DataParallel)
%ended(DataParallelOptions)
%ended(DistributedSampler)
%ended(DistributedSamplerOptions)
%ended(Gemm)
%ended(GemmInfo)
%ended(GemmLayout)
%ended(GemmProblem)
%ended(GemmSchedule)
%ended(GenerateOptions)
%ended(Graph)
%ended(LocalRanks)
%ended(LossScaler)
%ended(LossScalerOptions)
%ended(Model)
%ended(NextRows)
%ended(Optimizer)
%ended(PackedMatrix)
%ended(Pending)
%ended(Pipeline)
%ended(Plan)
%ended(Predictor)
%ended(PredictorOptions)
%ended(Recipe)
%ended(Schedule)
%ended(ShardedOptimizer)
%ended(ShardedOptimizerOptions)
%ended(Tensor)
%ended(Trainer)

// Numbers.
%define %number(Type, CsType)
%typemap(csvarin) Type %{
    set { $imcall; } %}
%typemap(csvarout) Type %{
    get { return $imcall; } %}
%typemap(csout) Type {
    CsType result;
    try { result = $imcall; } catch (global::System.ObjectDisposedException) { throw Failure.Closed(); }
    Failure.Check();
    return result;
  }
%enddef
%number(bool, bool)
%number(int32_t, int)
%number(int64_t, long)
%number(double, double)
%typemap(csout) void {
    try { $imcall; } catch (global::System.ObjectDisposedException) { throw Failure.Closed(); }
    Failure.Check();
  }

%define %enumeration(Enum)
%ignore scaletrain::Enum;
%typemap(ctype) scaletrain::Enum "int"
%typemap(imtype) scaletrain::Enum "int"
%typemap(cstype) scaletrain::Enum "int"
%typemap(csin) scaletrain::Enum "$csinput"
%typemap(in) scaletrain::Enum %{ $1 = static_cast<scaletrain::Enum>($input); %}
%typemap(out) scaletrain::Enum %{ $result = static_cast<int>($1); %}
%typemap(csvarin) scaletrain::Enum %{
    set { $imcall; } %}
%typemap(csvarout) scaletrain::Enum %{
    get { return $imcall; } %}
%enddef
%ignore scaletrain::Status;
%ignore scaletrain::LogLevel;
%enumeration(DType)
%enumeration(Init)
%enumeration(Activation)
%enumeration(GemmOrder)
%enumeration(GemmPacking)
%enumeration(GemmSource)
%enumeration(GemmLibrary)
%enumeration(ReduceOp)
%enumeration(LastRows)

// Memory and functions, by address.
%typemap(ctype) void* "void*"
%typemap(imtype) void* "global::System.IntPtr"
%typemap(cstype) void* "global::System.IntPtr"
%typemap(csin) void* "$csinput"
%typemap(in) void* %{ $1 = $input; %}
%typemap(out) void* %{ $result = $1; %}
%typemap(csout) void* {
    global::System.IntPtr result;
    try { result = $imcall; } catch (global::System.ObjectDisposedException) { throw Failure.Closed(); }
    Failure.Check();
    return result;
  }

// Strings: UTF-8, with a terminating zero when passed to C++.
%typemap(ctype, out="const void*") std::string, const std::string& "const char*"
%typemap(imtype, out="global::System.IntPtr") std::string, const std::string& "byte[]"
%typemap(cstype) std::string, const std::string& "string"
%typemap(csin) std::string, const std::string& "Utf8.Of($csinput)"
%typemap(in) const std::string& (std::string text) {
  %converted(if ($input) text = $input;)
  $1 = &text;
}
%typemap(out) std::string %{ $result = csharp::record($1); %}
%typemap(out) const std::string& %{ $result = csharp::record(*$1); %}
%typemap(csout) std::string, const std::string& {
    global::System.IntPtr result;
    try { result = $imcall; } catch (global::System.ObjectDisposedException) { throw Failure.Closed(); }
    Failure.Check();
    return new Record(result).Text();
  }
%typemap(csvarin) SWIGTYPE, SWIGTYPE * %{
    set { $imcall; } %}
%typemap(csvarout) SWIGTYPE, SWIGTYPE * %{
    get { return new $csclassname($imcall, false); } %}
%typemap(csvarin) std::string, const std::string& %{
    set { $imcall; } %}
%typemap(csvarout) std::string, const std::string& %{
    get { return new Record($imcall).Text(); } %}

// Lists, in the format that C# writes.
%define %list(Type)
%typemap(ctype) const std::vector<Type>& "const unsigned char*"
%typemap(imtype) const std::vector<Type>& "byte[]"
%typemap(cstype) const std::vector<Type>& "byte[]"
%typemap(csin) const std::vector<Type>& "$csinput"
%typemap(in) const std::vector<Type>& (std::vector<Type> list) {
  %converted(csharp::read($input, list);)
  $1 = &list;
}
%enddef
%list(int64_t)
%list(int32_t)
%list(std::string)
%list(scaletrain::Value)
%list(scaletrain::Field)
%list(scaletrain::OpType)
%list(scaletrain::Attribute)

// Results of a call as a record, which C# reads before its next call.
%define %recorded(Type)
%typemap(ctype) Type "const void*"
%typemap(imtype) Type "global::System.IntPtr"
%typemap(cstype) Type "Record"
%typemap(out) Type %{ $result = csharp::record($1); %}
%typemap(csout) Type {
    global::System.IntPtr result;
    try { result = $imcall; } catch (global::System.ObjectDisposedException) { throw Failure.Closed(); }
    Failure.Check();
    return new Record(result);
  }
%enddef
%define %report(Report)
%ignore scaletrain::Report;
%recorded(scaletrain::Report)
%enddef
%report(StepReport)
%report(OptimizerReport)
%report(Evaluation)
%report(MemoryStats)
%report(ParameterInfo)
%report(ValueInfo)
%report(ReadReport)
%report(LoadReport)
%report(SaveProgress)
%recorded(scaletrain::Views)
%recorded(std::vector<scaletrain::Value>)
%typemap(ctype) scaletrain::StepReport* "const void*"  // null if the step is not finished yet
%typemap(imtype) scaletrain::StepReport* "global::System.IntPtr"
%typemap(cstype) scaletrain::StepReport* "Record"
%typemap(out) scaletrain::StepReport* %{
  $result = $1 ? csharp::record(*$1) : nullptr;
  delete $1;
%}
%typemap(csout) scaletrain::StepReport* = scaletrain::StepReport;
%typemap(newfree) scaletrain::StepReport* "";

// Arrays: addresses of the descriptions that Pins.cs writes.
%define %described(Type, Raw)
%typemap(ctype) Type "const csharp::Raw*"
%typemap(imtype) Type "global::System.IntPtr"
%typemap(cstype) Type "global::System.IntPtr"
%typemap(csin) Type "$csinput"
%enddef
%described(const scaletrain::View&, RawView)
%described(const scaletrain::View*, RawView)
%described(const std::vector<scaletrain::View>&, RawViews)
%described(const scaletrain::Views&, RawViews)
%typemap(in) const scaletrain::View& (scaletrain::View view) {
  %converted(view = csharp::view_of(*$input);)
  $1 = &view;
}
%typemap(in) const scaletrain::View* (scaletrain::View view) {
  %converted(if ($input) view = csharp::view_of(*$input);)
  $1 = $input ? &view : nullptr;
}
%typemap(in) const std::vector<scaletrain::View>& (std::vector<scaletrain::View> views) {
  %converted(views = csharp::list_of($input);)
  $1 = &views;
}
%typemap(in) const scaletrain::Views& (scaletrain::Views views) {
  %converted(views = csharp::named_of($input);)
  $1 = &views;
}

// Functions: GCHandles of delegates, owned by native code from here on.
%define %function(Function, maker)
%typemap(ctype) const scaletrain::Function& "void*"
%typemap(imtype) const scaletrain::Function& "global::System.IntPtr"
%typemap(cstype) const scaletrain::Function& "global::System.IntPtr"
%typemap(csin) const scaletrain::Function& "$csinput"
%typemap(in) const scaletrain::Function& (scaletrain::Function function) {
  %converted(function = csharp::maker($input);)
  $1 = &function;
}
%enddef
%function(StepFunction, step_function)
%function(TokenFunction, token_function)
%function(LogFunction, log_function)
%function(ParallelFunction, parallel_function)
%function(WriteFunction, write_function)
%function(ReadFunction, read_function)
%function(RateFunction, rate_function)
%function(Transport, transport_of)
%function(ReleaseFunction, release_function)
%function(Stage, stage_of)
%function(Fill, fill_function)
%typemap(in) const scaletrain::Fill& (scaletrain::Fill fill) {
  %converted(fill.function = csharp::fill_function($input);)
  $1 = &fill;
}

// Graph values are passed as their ids.
%ignore scaletrain::Value;
%typemap(ctype) scaletrain::Value, const scaletrain::Value& "int32_t"
%typemap(imtype) scaletrain::Value, const scaletrain::Value& "int"
%typemap(cstype) scaletrain::Value, const scaletrain::Value& "int"
%typemap(csin) scaletrain::Value, const scaletrain::Value& "$csinput"
%typemap(in) const scaletrain::Value& (scaletrain::Value value) %{
  value = scaletrain::Value(nullptr, $input, nullptr);
  $1 = &value;
%}
%typemap(out) scaletrain::Value %{ $result = $1.id(); %}
%typemap(csout) scaletrain::Value = int32_t;

// classes.i replaces these.
%ignore scaletrain::ErrorInfo;
%ignore scaletrain::Context::register_op;
%ignore scaletrain::Graph::value;
%ignore scaletrain::Tensor::view;
%ignore scaletrain::Tensor::to_dlpack;
%ignore scaletrain::Tensor::from_dlpack;
%ignore scaletrain::bytes_of;
