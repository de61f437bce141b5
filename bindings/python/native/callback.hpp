// Wraps Python functions as library callbacks. They run on any thread, with the interpreter's lock held. A Python exception passes through
// the library and is reraised to the caller unchanged.
#pragma once

#include <scaletrain/communicator.hpp>
#include <scaletrain/data.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/pipeline.hpp>
#include <scaletrain/predictor.hpp>
#include <scaletrain/trainer.hpp>

#include <map>

#include "memory.hpp"
#include "report.hpp"

namespace scaletrain::python {

/// The function; empty for None. Throws Error for an object that cannot be called.
inline Object function_of(PyObject* object, const char* name) {
  if (object == Py_None) return Object();
  if (PyCallable_Check(object) == 0) refuse(std::string(name) + " must be a function, got a " + type_name(object));
  return borrowed(object);
}

/// Whether a run continues. Only False, or NumPy's False, ends it, so a function without a return value does not.
inline bool goes_on(const Object& answer) {
  if (answer.get() == Py_None || answer.get() == Py_True) return true;
  if (answer.get() == Py_False) return false;
  const std::string type = type_name(answer.get());
  return (type != "bool" && type != "bool_") || PyObject_IsTrue(answer.get()) != 0;
}

inline StepFunction step_function(PyObject* object) {
  const Object function = function_of(object, "on_step");
  if (!function) return StepFunction();
  return [function](const StepReport& report) {
    const Gil gil;
    return goes_on(called(function, Py_BuildValue("(N)", to_python(report))));
  };
}

inline TokenFunction token_function(PyObject* object) {
  const Object function = function_of(object, "on_token");
  if (!function) return TokenFunction();
  return [function](int32_t token) {
    const Gil gil;
    return goes_on(called(function, Py_BuildValue("(i)", static_cast<int>(token))));
  };
}

inline RateFunction rate_function(PyObject* object) {
  const Object function = function_of(object, "rate");
  if (!function) return RateFunction();
  return [function](int64_t step) {
    const Gil gil;
    const Object answer = called(function, Py_BuildValue("(L)", static_cast<long long>(step)));
    const double rate = PyFloat_AsDouble(answer.get());
    if (rate == -1 && PyErr_Occurred() != nullptr) throw Raised();
    return rate;
  };
}

inline LogFunction log_function(PyObject* object) {
  const Object function = function_of(object, "log");
  if (!function) return LogFunction();
  return [function](LogLevel level, const char* area, const char* text) {
    const Gil gil;
    called(function, Py_BuildValue("(iNN)", static_cast<int>(level), to_python(std::string(area)), to_python(std::string(text))));
  };
}

/// A Python callable for the tasks of a parallel-for, valid until the parallel-for returns.
class Task {
 public:
  explicit Task(const std::function<void(int64_t)>& task) : task_(&task) {
    static PyMethodDef method = {"task", call, METH_O, "Runs one task."};
    capsule_ = made(PyCapsule_New(this, kName, nullptr));
    function_ = made(PyCFunction_New(&method, capsule_.get()));
  }
  PyObject* function() const noexcept { return function_.get(); }
  /// Makes later calls fail, and waits for tasks that still run on threads that the parallel function did not wait for.
  ~Task() {
    if (capsule_ && PyCapsule_SetPointer(capsule_.get(), static_cast<void*>(&over())) != 0) PyErr_Clear();
    while (running_ > 0) {
      const Unlocked unlocked;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  Task(const Task&) = delete;

 private:
  static constexpr const char* kName = "scaletrain.task";
  explicit Task(std::nullptr_t) {}
  static Task& over() {
    static Task none(nullptr);
    return none;
  }
  static PyObject* call(PyObject* self, PyObject* index) {
    auto* task = static_cast<Task*>(PyCapsule_GetPointer(self, kName));
    const long long i = PyLong_AsLongLong(index);
    if (task == nullptr || (i == -1 && PyErr_Occurred() != nullptr)) return nullptr;
    if (task->task_ == nullptr) {
      PyErr_SetString(PyExc_RuntimeError, "scaletrain: a task was run after the parallel function that it belongs to has returned");
      return nullptr;
    }
    ++task->running_;
    {
      const Unlocked unlocked;
      (*task->task_)(i);  // library code, which does not throw
    }
    --task->running_;
    Py_RETURN_NONE;
  }

  const std::function<void(int64_t)>* task_ = nullptr;
  int running_ = 0;  // counted with the lock held
  Object capsule_, function_;
};

inline ParallelFunction parallel_function(PyObject* object) {
  const Object function = function_of(object, "parallel");
  if (!function) return ParallelFunction();
  return [function](int64_t n, const std::function<void(int64_t)>& task) {
    const Gil gil;
    const Task callable(task);
    called(function, Py_BuildValue("(LO)", static_cast<long long>(n), callable.function()));
  };
}

/// Keeps a borrowed Python object alive until the library releases it.
inline std::function<void()> release_function(PyObject* object) {
  return [held = std::make_shared<Object>(borrowed(object))] { held->reset(); };
}

inline FillFunction fill_function(PyObject* object) {
  const Object function = function_of(object, "fill");
  if (!function) refuse("fill must be a function that writes rows, got None");
  return [function](const int64_t* row_ids, int64_t count, const std::vector<View>& views) {
    const Gil gil;
    BorrowedArray lent;
    const View rows(DType::i64, static_cast<const void*>(row_ids), {count}, count * bytes_of(DType::i64));
    PyObject* const ids = lent.lend({rows}, false);
    lent.call("fill", function, Py_BuildValue("(NN)", ids, lent.lend(views, true)));
  };
}

inline WriteFunction write_function(PyObject* object) {
  const Object function = function_of(object, "write");
  if (!function) refuse("write must be a function that takes bytes, got None");
  return [function](const void* bytes, int64_t count) {
    const Gil gil;
    called(function, Py_BuildValue("(y#)", static_cast<const char*>(bytes), static_cast<Py_ssize_t>(count)));
  };
}

inline ReadFunction read_function(PyObject* object) {
  const Object function = function_of(object, "read");
  if (!function) refuse("read must be a function that returns bytes, got None");
  return [function](void* bytes, int64_t room) {
    const Gil gil;
    const Object answer = called(function, Py_BuildValue("(L)", static_cast<long long>(room)));
    Py_buffer given;
    if (PyObject_GetBuffer(answer.get(), &given, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();
      refuse_type("read must return bytes, got " + shown(answer.get()) + " (" + type_name(answer.get()) + "); open files with \"rb\"");
    }
    const Py_ssize_t count = given.len;
    if (count <= room) std::memcpy(bytes, given.buf, static_cast<size_t>(count));
    PyBuffer_Release(&given);
    if (count > room) refuse("read must return at most " + std::to_string(room) + " bytes, got " + std::to_string(count));
    return static_cast<int64_t>(count);
  };
}

/// Converts an exception of a transport's function to its text, which becomes the reason for the group's end.
template <class Move>
int64_t moved_by(const Move& move) {
  const Gil gil;
  try {
    return move();
  } catch (const Raised& raised) {
    throw Error(Status::callback, raised.what());
  }
}

/// A transport written in Python: an object with write(to, bytes) -> int and read(source, most) -> bytes. Kept until the group is over.
inline Transport transport_of(PyObject* object) {
  const auto method = [object](const char* name) { return function_of(made(PyObject_GetAttrString(object, name)).get(), name); };
  const Object write = method("write"), read = method("read");
  Transport transport;
  if (write)
    transport.write = [write](int32_t to, const void* data, int64_t bytes) {
      return moved_by([&] {
        const Object taken =
            called(write, Py_BuildValue("(iy#)", static_cast<int>(to), static_cast<const char*>(data), static_cast<Py_ssize_t>(bytes)));
        return integer_of<int64_t>(taken.get(), "write's answer");
      });
    };
  if (read)
    transport.read = [read](int32_t from, void* data, int64_t bytes) {
      return moved_by([&] {
        const Object answer = called(read, Py_BuildValue("(iL)", static_cast<int>(from), static_cast<long long>(bytes)));
        Py_buffer given;
        if (PyObject_GetBuffer(answer.get(), &given, PyBUF_SIMPLE) != 0) throw Raised();
        const auto count = static_cast<int64_t>(given.len);
        if (count <= bytes) std::memcpy(data, given.buf, static_cast<size_t>(count));
        PyBuffer_Release(&given);
        return count;  // the library checks its bounds
      });
    };
  return transport;
}

/// Types as a list of (dtype, dims).
inline std::vector<OpType> types_of(PyObject* object) {
  const Object list = made(PySequence_Tuple(object));
  std::vector<OpType> types;
  for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i) {
    int dtype = 0;
    PyObject* dims = nullptr;
    if (PyArg_ParseTuple(PyTuple_GetItem(list.get(), i), "iO", &dtype, &dims) == 0) throw Raised();
    types.push_back({static_cast<DType>(dtype), integers_of(dims, "dims")});
  }
  return types;
}

/// An op written in Python: an object with shape, forward and backward (or None), and outputs.
inline HostOp host_op(PyObject* object) {
  const auto method = [object](const char* name) { return function_of(made(PyObject_GetAttrString(object, name)).get(), name); };
  const Object shape = method("shape"), forward = method("forward"), backward = method("backward");
  const Object outputs = made(PyObject_GetAttrString(object, "outputs"));
  HostOp op;
  op.outputs = integer_of<int32_t>(outputs.get(), "outputs");
  if (shape)
    op.shape = [shape](const std::vector<OpType>& inputs) {
      const Gil gil;
      const Object types = made(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
      for (size_t i = 0; i < inputs.size(); ++i) {
        PyObject* const type = Py_BuildValue("(iN)", static_cast<int>(inputs[i].dtype), to_python(inputs[i].dims));
        if (type == nullptr) throw Raised();
        PyTuple_SetItem(types.get(), static_cast<Py_ssize_t>(i), type);
      }
      const Object answer = called(shape, Py_BuildValue("(O)", types.get()));
      return types_of(answer.get());
    };
  if (forward)
    op.forward = [forward](const std::vector<View>& inputs, const std::vector<View>& outputs_of_call) {
      const Gil gil;
      BorrowedArray lent;
      PyObject* const in = lent.lend(inputs, false);
      lent.call("forward", forward, Py_BuildValue("(NN)", in, lent.lend(outputs_of_call, true)));
    };
  if (backward)
    op.backward = [backward](const std::vector<View>& inputs, const std::vector<View>& outputs_of_call, const std::vector<View>& d_outputs,
                             const std::vector<View>& d_inputs) {
      const Gil gil;
      BorrowedArray lent;
      PyObject *const in = lent.lend(inputs, false), *const out = lent.lend(outputs_of_call, false);
      PyObject* const d_out = lent.lend(d_outputs, false);
      lent.call("backward", backward, Py_BuildValue("(NNNN)", in, out, d_out, lent.lend(d_inputs, true)));
    };
  return op;
}

/// The arrays of the micro-batches between their forward and the last call of their backward, by chunk and micro-batch. Used with the lock
/// held.
using StageArrays = std::map<std::pair<int32_t, int32_t>, BorrowedArray>;
constexpr const char* kStageArrays = "scaletrain.stage_arrays";

inline PyObject* new_stage_arrays() {
  auto arrays = std::make_unique<std::shared_ptr<StageArrays>>(std::make_shared<StageArrays>());
  PyObject* const capsule = PyCapsule_New(arrays.get(), kStageArrays, [](PyObject* of) {
    delete static_cast<std::shared_ptr<StageArrays>*>(PyCapsule_GetPointer(of, kStageArrays));
  });
  if (capsule == nullptr) throw Raised();
  static_cast<void>(arrays.release());
  return capsule;
}
inline std::shared_ptr<StageArrays> stage_arrays(PyObject* capsule) {
  auto* const arrays = static_cast<std::shared_ptr<StageArrays>*>(PyCapsule_GetPointer(capsule, kStageArrays));
  if (arrays == nullptr) throw Raised();
  return *arrays;
}

/// A stage written in Python: an object with forward, backward_input, backward_weight (or None), and its arrays.
inline Stage stage_of(PyObject* object) {
  const auto method = [object](const char* name) { return function_of(made(PyObject_GetAttrString(object, name)).get(), name); };
  const Object forward = method("forward"), backward_input = method("backward_input"), backward_weight = method("backward_weight");
  const auto arrays = stage_arrays(made(PyObject_GetAttrString(object, "arrays")).get());
  const auto caller = [&arrays](const char* name, const Object& function, bool is_forward, bool is_last) {
    if (!function) return StageFunction();
    return StageFunction([=](const StageWork& work) {
      const Gil gil;
      const std::pair key(work.chunk, work.micro_batch);
      BorrowedArray& lent = (*arrays)[key];
      PyObject *const input = lent.lend(work.input, false), *const output = lent.lend(work.output, is_forward);
      PyObject *const d_output = lent.lend(work.output_gradient, false), *const d_input = lent.lend(work.input_gradient, true);
      PyObject* const shown = construct("StageWork", Py_BuildValue("(iiiNNNN)", static_cast<int>(work.part), static_cast<int>(work.chunk),
                                                                   static_cast<int>(work.micro_batch), input, output, d_output, d_input));
      lent.call(name, function, Py_BuildValue("(N)", shown), !is_last);
      if (is_last) arrays->erase(key);
    });
  };
  return {caller("forward", forward, true, false), caller("backward_input", backward_input, false, !backward_weight),
          caller("backward_weight", backward_weight, false, true)};
}

}  // namespace scaletrain::python
