// Conversion of values between Python and C++. Every call releases the interpreter's lock. Exceptions of callbacks and errors of the library
// become Python exceptions. Arrays are used in place. The classes generated here are internal: users see scaletrain/*.py.
%{
#include "python/native/callback.hpp"
#include "python/native/interrupt.hpp"

namespace python = scaletrain::python;

#undef SWIG_PYTHON_THREAD_BEGIN_ALLOW
#undef SWIG_PYTHON_THREAD_END_ALLOW
#define SWIG_PYTHON_THREAD_BEGIN_ALLOW python::Unlocked unlocked
#define SWIG_PYTHON_THREAD_END_ALLOW unlocked.end()
%}

%exception {
  try {
    $action
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}

// self is None if a method is called through its class.
%typemap(check) SWIGTYPE *self {
  if ($1 == nullptr) SWIG_exception_fail(SWIG_TypeError, "$symname must be called on an object of $1_basetype, got None");
}

// Numbers and strings. Errors have their name and value.
%define %one(Type, maker)
%typemap(in) Type {
  try {
    $1 = python::maker($input, "$1_name");
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
// Overloads differ only in the number of arguments. The typemaps above refuse an argument of another type with its name and value.
%typemap(typecheck, precedence=SWIG_TYPECHECK_INTEGER) Type "$1 = 1;"
%enddef
%one(int32_t, integer_of<int32_t>)
%one(int64_t, integer_of<int64_t>)
%one(double, real_of<double>)
%one(float, real_of<float>)
%one(bool, truth_of)
%one(std::string, text_of)
%typemap(in) const std::string& (std::string text) {
  try {
    text = python::text_of($input, "$1_name");
    $1 = &text;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%typemap(freearg) const std::string& "";
%typemap(out) std::string {
  $result = python::to_python($1);
  if ($result == nullptr) SWIG_fail;
}
%typemap(out) const std::string& {
  $result = python::to_python(*$1);
  if ($result == nullptr) SWIG_fail;
}

// Calls that Ctrl-C interrupts.
%define %long_call(Call)
%exception Call {
  try {
    const python::Interruptible interruptible(scaletrain::detail::Access::context(*arg1));
    $action
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%enddef
%long_call(scaletrain::Trainer::step)
%long_call(scaletrain::Trainer::run)
%long_call(scaletrain::Trainer::work)
%long_call(scaletrain::Trainer::forward)
%long_call(scaletrain::Trainer::backward)
%long_call(scaletrain::Trainer::apply)
%long_call(scaletrain::Trainer::evaluate)
%long_call(scaletrain::Trainer::evaluate_collective)
%long_call(scaletrain::Trainer::evaluate_average)
%long_call(scaletrain::Trainer::evaluate_average_collective)
%long_call(scaletrain::Trainer::average)
%long_call(scaletrain::Trainer::average_collective)
%long_call(scaletrain::Trainer::use_average)
%long_call(scaletrain::Trainer::gradient)
%long_call(scaletrain::Trainer::gradient_collective)
%long_call(scaletrain::Trainer::digest)
%long_call(scaletrain::Trainer::digest_collective)
%long_call(scaletrain::Trainer::log_end)
%long_call(scaletrain::Trainer::write_report)
%long_call(scaletrain::Trainer::save)
%long_call(scaletrain::Trainer::save_collective)
%long_call(scaletrain::Trainer::resume_from)
%long_call(scaletrain::Predictor::Predictor)
%long_call(scaletrain::Predictor::collective)
%long_call(scaletrain::Predictor::refresh)
%long_call(scaletrain::Predictor::run)
%long_call(scaletrain::Predictor::generate)
%long_call(scaletrain::Model::clone)
%long_call(scaletrain::Model::clone_collective)
%long_call(scaletrain::Model::digest)
%long_call(scaletrain::Model::digest_collective)
%long_call(scaletrain::Model::get)
%long_call(scaletrain::Model::get_collective)
%long_call(scaletrain::Model::write_file_collective)
%long_call(scaletrain::Model::load_from)
%long_call(scaletrain::Checkpoint::save)
%long_call(scaletrain::Checkpoint::load_to)
%long_call(scaletrain::Checkpoint::verify)
%long_call(scaletrain::Checkpoint::hash)
%long_call(scaletrain::Checkpoint::reshard)
%long_call(scaletrain::Checkpoint::export_to)
%long_call(scaletrain::Communicator::processes)
%long_call(scaletrain::Communicator::env)
%long_call(scaletrain::Communicator::host_at)
%long_call(scaletrain::Communicator::callbacks)
%long_call(scaletrain::Communicator::split)
%long_call(scaletrain::Communicator::duplicate)
%long_call(scaletrain::Communicator::all_reduce)
%long_call(scaletrain::Communicator::reduce_scatter)
%long_call(scaletrain::Communicator::all_gather)
%long_call(scaletrain::Communicator::all_to_all)
%long_call(scaletrain::Communicator::broadcast)
%long_call(scaletrain::Communicator::send)
%long_call(scaletrain::Communicator::receive)
%long_call(scaletrain::Communicator::barrier)
%long_call(scaletrain::DataParallel::synchronize)
%long_call(scaletrain::Pipeline::Pipeline)
%long_call(scaletrain::Pipeline::run)
%long_call(scaletrain::ShardedOptimizer::ShardedOptimizer)
%long_call(scaletrain::ShardedOptimizer::gradient_ready)
%long_call(scaletrain::ShardedOptimizer::step)
%long_call(scaletrain::ShardedOptimizer::gather_state)

// Arrays.
%typemap(in) const scaletrain::View& (python::Array array) {
  try {
    array = python::Array($input, "$1_name");
    $1 = const_cast<$1_ltype>(&array.view());
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%typemap(in) const scaletrain::View* (python::Array array) {
  try {
    if ($input != Py_None) {
      array = python::Array($input, "$1_name");
      $1 = const_cast<$1_ltype>(&array.view());
    }
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%typemap(in) const std::vector<scaletrain::View>& (python::Arrays arrays) {
  try {
    arrays = python::Arrays::of_list($input, "$1_name");
    $1 = const_cast<$1_ltype>(&arrays.list());
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%typemap(in) const scaletrain::Views& (python::Arrays arrays) {
  try {
    const python::Arrays* kept = python::Arrays::kept_by($input);
    if (kept == nullptr) kept = &(arrays = python::Arrays::of_dict($input));
    $1 = const_cast<$1_ltype>(&kept->named());
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
// Named memory, which its owner keeps alive.
%typemap(out) scaletrain::Views {
  $result = PyDict_New();
  for (const scaletrain::NamedView& named : $1) {
    const python::Object shown = python::owned(python::show(named.view, python::borrowed(swig_obj[0]), nullptr));
    if (!shown || PyDict_SetItemString($result, named.name.c_str(), shown.get()) != 0) SWIG_fail;
  }
}

// Lists of numbers and strings.
%typemap(in) const std::vector<int64_t>& (std::vector<int64_t> list) {
  try {
    list = python::integers_of($input, "$1_name");
    $1 = &list;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%typemap(in) const std::vector<int32_t>& (std::vector<int32_t> list) {
  try {
    list = python::integers_of<int32_t>($input, "$1_name");
    $1 = &list;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}

// Enums are passed as their numbers.
%define %number(Enum)
%typemap(in) scaletrain::Enum {
  const long number = PyLong_AsLong($input);
  if (number == -1 && PyErr_Occurred() != nullptr) SWIG_fail;
  $1 = static_cast<scaletrain::Enum>(number);
}
%typemap(out) scaletrain::Enum { $result = PyLong_FromLong(static_cast<long>($1)); }
%enddef
%number(DType)
%number(Init)
%number(Activation)
%number(GemmOrder)
%number(GemmPacking)
%number(GemmSource)
%number(GemmLibrary)
%number(ReduceOp)
%number(LastRows)

// Reports become named tuples of the Python layer.
%define %report(Report)
%ignore scaletrain::Report;
%typemap(out) scaletrain::Report {
  $result = python::to_python($1);
  if ($result == nullptr) SWIG_fail;
}
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
%typemap(out) scaletrain::StepReport* {
  if ($1 == nullptr) {
    $result = Py_NewRef(Py_None);
  } else {
    $result = python::to_python(*$1);
    delete $1;
    if ($result == nullptr) SWIG_fail;
  }
}
%typemap(newfree) scaletrain::StepReport* "";

// Functions.
%define %function(Function, maker)
%typemap(in) const scaletrain::Function& (scaletrain::Function function) {
  try {
    function = python::maker($input);
    $1 = &function;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
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
%typemap(in) const scaletrain::Fill& (scaletrain::Fill fill) {
  try {
    fill.function = python::fill_function($input);
    $1 = &fill;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%function(ReleaseFunction, release_function)
%define %made_of(Type, maker)
%typemap(in) const Type& (Type made) {
  try {
    made = python::maker($input);
    $1 = &made;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%enddef
%made_of(scaletrain::HostOp, host_op)
%made_of(scaletrain::Stage, stage_of)
%made_of(std::vector<scaletrain::OpType>, types_of)

// Fields of rows: [("x", dtype, (2,)), ...].
%typemap(in) const std::vector<scaletrain::Field>& (std::vector<scaletrain::Field> fields) {
  try {
    const python::Object list = python::made(PySequence_Tuple($input));
    for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i) {
      PyObject *name = nullptr, *dims = nullptr;
      int dtype = 0;
      if (PyArg_ParseTuple(PyTuple_GetItem(list.get(), i), "OiO", &name, &dtype, &dims) == 0) throw python::Raised();
      fields.push_back({python::text_of(name, "the name of a field"), static_cast<scaletrain::DType>(dtype), python::integers_of(dims, "dims")});
    }
    $1 = &fields;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}

// Graph values.
%typemap(in) const std::vector<scaletrain::Value>& (std::vector<scaletrain::Value> inputs) {
  const python::Object list = python::owned(PySequence_Tuple($input));
  if (!list) SWIG_fail;
  for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i) {
    if (PyTuple_GetItem(list.get(), i) == Py_None) {  // an omitted optional input
      inputs.emplace_back(nullptr, ST_NONE, nullptr);
      continue;
    }
    void* value = nullptr;
    const int converted = SWIG_ConvertPtr(PyTuple_GetItem(list.get(), i), &value, $descriptor(scaletrain::Value*), 0);
    if (!SWIG_IsOK(converted) || value == nullptr) SWIG_exception_fail(SWIG_TypeError, "a list of graph values is required");
    inputs.push_back(*static_cast<scaletrain::Value*>(value));
  }
  $1 = &inputs;
}
%typemap(in) const std::vector<scaletrain::Attribute>& (std::vector<scaletrain::Attribute> attributes) {
  try {
    attributes = python::attributes_of($input);
    $1 = &attributes;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}
%typemap(out) std::vector<scaletrain::Value> {
  const std::vector<scaletrain::Value>& all = $1;
  $result = python::tuple_of(all, [](const scaletrain::Value& value) {
    return SWIG_NewPointerObj(new scaletrain::Value(value), $descriptor(scaletrain::Value*), SWIG_POINTER_OWN);
  });
  if ($result == nullptr) SWIG_fail;
}

%typemap(in) const std::vector<std::string>& (std::vector<std::string> texts) {
  try {
    texts = python::texts_of($input, "$1_name");
    $1 = &texts;
  } catch (...) {
    python::set_current_error();
    SWIG_fail;
  }
}

// classes.i replaces these.
%ignore scaletrain::Tensor::view;
%ignore scaletrain::Tensor::to_dlpack;
%ignore scaletrain::Tensor::from_dlpack;
