// Python objects in C++: references that any thread may drop, the interpreter's lock, and exceptions that pass through the library
// unchanged.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <scaletrain/error.hpp>
#include <string>
#include <thread>

namespace scaletrain::python {

/// State of the interpreter's end. After it, the interpreter terminates every other thread that waits for its lock, Python's daemon threads
/// included. That must not happen in the middle of the library.
struct Ending {
  std::atomic<bool> begun{false};
  std::atomic<std::thread::id> by{};
  std::atomic<int> inside{0};  // threads that hold the lock or wait for it
  static Ending& here() {
    static Ending ending;
    return ending;
  }
  /// Only the thread that ends the interpreter still calls its functions.
  bool is_over_here() const { return begun.load() && by.load() != std::this_thread::get_id(); }
};

/// Holds the interpreter's lock, on any thread. If the program is ending, the constructor throws Error, except on the thread that ends it.
class Gil {
 public:
  Gil() {
    Ending::here().inside.fetch_add(1);
    if (Ending::here().is_over_here()) {
      Ending::here().inside.fetch_sub(1);
      throw Error(Status::cancelled, "the interpreter is shutting down; Python callbacks are no longer called");
    }
    state_ = PyGILState_Ensure();
  }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;
  ~Gil() {
    PyGILState_Release(state_);
    Ending::here().inside.fetch_sub(1);
  }

 private:
  PyGILState_STATE state_;
};

/// Releases the interpreter's lock during a call. If the program is ending when the call returns, the thread blocks here forever: otherwise
/// the interpreter would terminate it in the middle of C++ code.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() { end(); }
  void end() {
    if (state_ == nullptr) return;
    Ending::here().inside.fetch_add(1);
    if (Ending::here().is_over_here()) {
      Ending::here().inside.fetch_sub(1);
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    PyThreadState* const state = state_;
    state_ = nullptr;
    PyEval_RestoreThread(state);
    Ending::here().inside.fetch_sub(1);
  }

 private:
  PyThreadState* state_;
};

/// Called at the end of the program, before the interpreter ends, without the lock held. When it returns, no library thread is in a Python
/// function, and none will enter one.
inline void end() {
  Ending::here().by.store(std::this_thread::get_id());
  Ending::here().begun.store(true);
  for (int i = 0; i < 10000 && Ending::here().inside.load() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Called in the child of a fork, where the parent's other threads do not exist and must not be waited for.
inline void forked() { Ending::here().inside.store(0); }

/// An owned reference. It may be copied and dropped without the lock; dropping the last copy takes the lock. After the interpreter's end
/// the object leaks.
using Object = std::shared_ptr<PyObject>;

inline void drop(PyObject* object) {
  if (object == nullptr || Py_IsInitialized() == 0) return;
  try {
    const Gil gil;
    Py_DECREF(object);
  } catch (const Error&) {  // the program is ending; the object leaks
  }
}
/// Takes a new reference over.
inline Object owned(PyObject* object) { return Object(object, drop); }
inline Object borrowed(PyObject* object) {
  Py_XINCREF(object);
  return owned(object);
}

/// For messages: the repr() of an exception.
std::string words_of(PyObject* exception);

/// Carries a Python exception through the library.
class Raised : public std::exception {
 public:
  /// Takes the thread's error.
  Raised() {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value != nullptr && trace != nullptr) PyException_SetTraceback(value, trace);
    type_ = owned(type), value_ = owned(value), trace_ = owned(trace);
    if (value != nullptr) words_ = words_of(value);
  }
  /// Makes it the thread's error again.
  void restore() const {
    Py_XINCREF(type_.get());
    Py_XINCREF(value_.get());
    Py_XINCREF(trace_.get());
    PyErr_Restore(type_.get(), value_.get(), trace_.get());
  }
  PyObject* value() const noexcept { return value_.get(); }
  const char* what() const noexcept override { return words_.c_str(); }

 private:
  Object type_, value_, trace_;
  std::string words_;
};

/// Takes over a new reference; if it is null, throws the thread's error.
inline Object made(PyObject* object) {
  if (object == nullptr) throw Raised();
  return owned(object);
}

/// Objects that the Python layer has registered by name: classes of reports, the function that creates an exception.
inline PyObject*& registry() {
  static PyObject* names = nullptr;
  return names;
}
inline PyObject* registered(const char* name) {
  PyObject* found = registry() != nullptr ? PyDict_GetItemString(registry(), name) : nullptr;
  if (found == nullptr) PyErr_Format(PyExc_RuntimeError, "scaletrain: the Python layer has not registered %s", name);
  return found;
}
/// Calls registered(name)(*arguments) and takes the tuple over.
inline PyObject* construct(const char* name, PyObject* arguments) {
  PyObject* type = registered(name);
  PyObject* result = type != nullptr && arguments != nullptr ? PyObject_CallObject(type, arguments) : nullptr;
  Py_XDECREF(arguments);
  return result;
}

/// Calls function(*arguments) and takes the tuple over. Refuses a generator or coroutine as the result, since its function has not run.
inline Object called(const Object& function, PyObject* arguments) {
  const Object held = made(arguments);
  Object answer = made(PyObject_CallObject(function.get(), held.get()));
  if (answer.get() == Py_None) return answer;
  PyObject* const unstarted = registered("unstarted");
  if (unstarted == nullptr || PyObject_IsInstance(answer.get(), unstarted) != 0) {
    const Object ended = owned(PyObject_CallMethod(answer.get(), "close", nullptr));
    PyErr_Clear();
    throw Error(Status::invalid_argument,
                "a callback must not be a generator or async function, whose call does not run it; give a plain function");
  }
  return answer;
}

/// Decodes UTF-8. Invalid bytes, as in a file name, are decoded as os.fsdecode does.
inline PyObject* to_python(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}

/// Raises the library's error on this thread. errors.py chooses the class.
inline void set_error(const Error& error) {
  const ErrorInfo& info = error.info();
  PyObject* arguments =
      Py_BuildValue("(iNNNNNLLiN)", static_cast<int>(error.status()), to_python(std::string(error.what())), to_python(info.op),
                    to_python(info.tensor), to_python(info.file), to_python(info.host), static_cast<long long>(info.offset),
                    static_cast<long long>(info.step), static_cast<int>(info.rank), to_python(info.collective));
  PyObject* exception = construct("error", arguments);
  if (exception == nullptr) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  Py_DECREF(exception);
}

/// To be called in a catch (...): raises the C++ exception on this thread. For a cancelled call, a pending Ctrl-C is raised instead.
inline void set_current_error() {
  try {
    throw;
  } catch (const Raised& raised) {
    raised.restore();
  } catch (const Error& error) {
    if (error.status() != Status::cancelled || PyErr_CheckSignals() == 0) set_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace scaletrain::python
