// How C#'s values cross over. The classes here are plain and internal: ScaleTrain/*.cs is what people use. An object is a SafeHandle, which a
// running call keeps; what is more than a number crosses as bytes (native/record.hpp) or where it lies (native/array.hpp); what a callback threw
// and what the library refused become exceptions when the call has returned (ScaleTrain/Failure.cs). None of SWIG's own callbacks is used.
%{
#include "csharp/native/callback.hpp"

namespace csharp = scaletrain::csharp;

#define SWIG_CSharpSetPendingExceptionArgument(code, message, parameter) csharp::fail(scaletrain::Status::invalid_argument, message, scaletrain::ErrorInfo())
%}

#pragma SWIG nowarn=844  // Failure.Check() is what throws

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
// What is made of C#'s values before the call, in the same way.
%define %converted(code...)
  try {
    code
  } catch (...) {
    csharp::set_current_error();
    return $null;
  }
%enddef

// Objects. Nothing is ended by the proxy itself: the handle is closed, and the last call out of it ends the object.
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

// Texts: UTF-8, ended by a zero on the way in.
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

// Lists, as C# wrote them.
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
%list(scaletrain::Attribute)

// What a call tells, read by C# before its next call.
%define %told(Type)
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
%told(scaletrain::Report)
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
%told(scaletrain::Views)
%told(std::vector<scaletrain::Value>)
%typemap(ctype) scaletrain::StepReport* "const void*"  // null: not whole yet
%typemap(imtype) scaletrain::StepReport* "global::System.IntPtr"
%typemap(cstype) scaletrain::StepReport* "Record"
%typemap(out) scaletrain::StepReport* %{
  $result = $1 ? csharp::record(*$1) : nullptr;
  delete $1;
%}
%typemap(csout) scaletrain::StepReport* = scaletrain::StepReport;
%typemap(newfree) scaletrain::StepReport* "";

// Arrays: addresses of what Pins.cs describes.
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

// Functions: handles of delegates, ours from here on.
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
%function(Fill, fill_function)
%typemap(in) const scaletrain::Fill& (scaletrain::Fill fill) {
  %converted(fill.function = csharp::fill_function($input);)
  $1 = &fill;
}

// A graph's values are its ids.
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

// classes.i has these in C#'s shape.
%ignore scaletrain::ErrorInfo;
%ignore scaletrain::Context::register_op;
%ignore scaletrain::Graph::value;
%ignore scaletrain::Tensor::view;
%ignore scaletrain::Tensor::to_dlpack;
%ignore scaletrain::Tensor::from_dlpack;
%ignore scaletrain::bytes_of;
