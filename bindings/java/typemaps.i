// Conversion of values between Java and C++. Exceptions of callbacks and errors of the library become Java exceptions. Direct buffers are used
// in place; heap arrays are copied. The classes generated here are internal: users see org/scaletrain/*.java.
%{
#include "java/native/entries.hpp"
#include "java/native/jcallback.hpp"
#include "java/native/lease.hpp"

namespace java = scaletrain::java;
%}

%include "enumtypeunsafe.swg"

%exception {
  try {
    $action
  } catch (...) {
    java::set_current_error(jenv);
    return $null;
  }
}

// The C++ object of a proxy is deleted after Java has collected the proxy. No call can be running then, since each call refers to the proxy.
// close() only ends the handle.
%typemap(javabody) SWIGTYPE %{
  private final long swigCPtr;
  /** Objects that must stay alive as long as this one, and during each of its calls. */
  public volatile Object keeps;

  protected $javaclassname(long cPtr, boolean cMemoryOwn) {
    swigCPtr = cPtr;
    if (cMemoryOwn) Unreachable.then(this, () -> $imclassname.delete_$javaclassname(cPtr));
  }

  protected static long getCPtr($javaclassname obj) {
    return obj == null ? 0 : obj.swigCPtr;
  }
%}
%typemap(javadestruct, methodname="delete", methodmodifiers="private") SWIGTYPE " {}"
%typemap(javafinalize) SWIGTYPE ""

// Runs a conversion; if it throws, the call returns with the Java exception.
%define %converted(statement)
  try {
    statement;
  } catch (...) {
    java::set_current_error(jenv);
    return $null;
  }
%enddef

// A Java object that is converted to or from `Type`.
%define %object(Type, JniType, JavaType)
%typemap(jni) Type "JniType"
%typemap(jtype) Type "JavaType"
%typemap(jstype) Type "JavaType"
%typemap(javain) Type "$javainput"
%typemap(javaout) Type { return $jnicall; }
%enddef

// Strings: UTF-16 in Java, UTF-8 in C++.
%typemap(in) const std::string& (std::string text) {
  %converted(text = java::text_of(jenv, $input, "$1_name"); $1 = &text)
}
%typemap(in) std::string {
  %converted($1 = java::text_of(jenv, $input, "$1_name"))
}
%typemap(out) std::string { %converted($result = java::new_text(jenv, $1)) }
%typemap(out) const std::string& { %converted($result = java::new_text(jenv, *$1)) }
%object(const std::vector<std::string>&, jobjectArray, String[])
%typemap(in) const std::vector<std::string>& (std::vector<std::string> texts) {
  %converted(texts = java::texts_of(jenv, $input, "$1_name"); $1 = &texts)
}

// Arrays.
%object(const scaletrain::View&, jobject, org.scaletrain.Array)
%object(const scaletrain::View*, jobject, org.scaletrain.Array)
%object(const std::vector<scaletrain::View>&, jobjectArray, org.scaletrain.Array[])
%object(const scaletrain::Views&, jobjectArray, Object[])
%object(scaletrain::Views, jobjectArray, Object[])
%typemap(in) const scaletrain::View& (java::Borrowed array) {
  %converted($1 = const_cast<$1_ltype>(&array.lend(jenv, $input, "$1_name", java::is_written("$symname", "$1_name"))))
}
%typemap(in) const scaletrain::View* (java::Borrowed array) {
  %converted($1 = $input == nullptr ? nullptr : const_cast<$1_ltype>(&array.lend(jenv, $input, "$1_name", java::is_written("$symname", "$1_name"))))
}
%typemap(in) const std::vector<scaletrain::View>& (java::Arrays arrays) {
  %converted($1 = const_cast<$1_ltype>(&arrays.list(jenv, $input, "$1_name", java::is_written("$symname", "$1_name"))))
}
%typemap(in) const scaletrain::Views& (java::Arrays arrays) {
  %converted($1 = const_cast<$1_ltype>(&arrays.named(jenv, $input, java::is_written("$symname", "$1_name"))))
}
%typemap(out) scaletrain::Views { %converted($result = java::shown(jenv, $1)) }

// Lists of numbers.
%object(const std::vector<int64_t>&, jlongArray, long[])
%object(const std::vector<int32_t>&, jintArray, int[])
%typemap(in) const std::vector<int64_t>& (std::vector<int64_t> list) {
  %converted(list = java::longs_of(jenv, $input, "$1_name"); $1 = &list)
}
%typemap(in) const std::vector<int32_t>& (std::vector<int32_t> list) {
  %converted(list = java::ints_of(jenv, $input, "$1_name"); $1 = &list)
}

%object(const std::vector<scaletrain::OpType>&, jlongArray, long[])
%typemap(in) const std::vector<scaletrain::OpType>& (std::vector<scaletrain::OpType> list) {
  %converted(list = java::types_of(jenv, $input, "$1_name"); $1 = &list)
}

// Reports are records of the public layer.
%define %report(Report)
%ignore scaletrain::Report;
%object(scaletrain::Report, jobject, Object)
%typemap(out) scaletrain::Report { %converted($result = java::to_java(jenv, $1)) }
%enddef
%report(StepReport)
%report(OptimizerReport)
%report(Evaluation)
%report(MemoryStats)
%report(ParameterInfo)
%report(ReadReport)
%report(LoadReport)
%report(SaveProgress)
%report(ValueInfo)
%object(scaletrain::StepReport*, jobject, Object)
%typemap(out) scaletrain::StepReport* {
  const std::unique_ptr<scaletrain::StepReport> whole($1);
  if (whole) {
    %converted($result = java::to_java(jenv, *whole))
  }
}
%typemap(newfree) scaletrain::StepReport* "";

// Functions are passed as Object; Callbacks casts them to their types.
%define %function(Function, maker)
%object(const scaletrain::Function&, jobject, Object)
%typemap(in) const scaletrain::Function& (scaletrain::Function function) {
  %converted(function = java::maker(jenv, $input); $1 = &function)
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
%function(HostOp, host_op)
%function(Stage, stage_of)
%object(const scaletrain::Fill&, jobject, Object)
%typemap(in) const scaletrain::Fill& (scaletrain::Fill fill) {
  %converted(fill.function = java::fill_function(jenv, $input); $1 = &fill)
}

// Graph values are passed as their ids. The first argument of every call that takes values is the graph.
%typemap(jni) scaletrain::Value, const scaletrain::Value& "jint"
%typemap(jtype) scaletrain::Value, const scaletrain::Value& "int"
%typemap(jstype) scaletrain::Value, const scaletrain::Value& "int"
%typemap(javain) scaletrain::Value, const scaletrain::Value& "$javainput"
%typemap(javaout) scaletrain::Value { return $jnicall; }
%typemap(in) const scaletrain::Value& (scaletrain::Value value) {
  %converted(value = scaletrain::Value(arg1->get(), $input, scaletrain::detail::Access::host(*arg1).get()); $1 = &value)
}
%typemap(out) scaletrain::Value { $result = $1.id(); }
%object(const std::vector<scaletrain::Value>&, jintArray, int[])
%object(std::vector<scaletrain::Value>, jintArray, int[])
%typemap(in) const std::vector<scaletrain::Value>& (std::vector<scaletrain::Value> values) {
  %converted(values = java::values_of(jenv, $input, *arg1); $1 = &values)
}
%typemap(out) std::vector<scaletrain::Value> {
  const std::vector<scaletrain::Value>& made = $1;
  %converted($result = java::new_ids(jenv, made))
}

// The JNI environment, for functions that call Java themselves.
%object(JNIEnv* env, jlong, long)
%typemap(in, numinputs=0) JNIEnv* env "$1 = jenv;"
%object(jobjectArray, jobjectArray, Object[])

%rename(wait_for_end) scaletrain::Pending::wait() const;  // every Java object has a wait()
%rename(wait_for_end) scaletrain::Checkpoint::wait() const;
// classes.i replaces these.
%ignore scaletrain::ReadReport;
%ignore scaletrain::ErrorInfo;
%ignore scaletrain::Tensor::view;
%ignore scaletrain::Tensor::to_dlpack() const;
%ignore scaletrain::Tensor::from_dlpack;
%ignore scaletrain::Context::register_op;
%ignore scaletrain::Graph::apply;
%ignore scaletrain::Graph::value;
%ignore scaletrain::Data::of_rows;
%ignore scaletrain::bytes_of;
%ignore scaletrain::Value;
