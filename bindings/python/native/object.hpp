// Python's objects in C++: references that any thread may drop, the interpreter's lock, and errors that cross the library as themselves.
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

/// How the interpreter ends: another thread that waits for the lock then, also a daemon thread of Python's, is ended by it where it stands,
/// which may not be the middle of the library.
struct Ending {
  std::atomic<bool> begun{false};
  std::atomic<std::thread::id> by{};
  std::atomic<int> inside{0};  // holders of the lock, and who waits for it
  static Ending& here() {
    static Ending ending;
    return ending;
  }
  /// Only the thread that ends the interpreter still calls its functions.
  bool is_over_here() const { return begun.load() && by.load() != std::this_thread::get_id(); }
};

/// Holds the interpreter's lock; from any thread. Throws Error in all threads but the ending one when the program is ending.
class Gil {
 public:
  Gil() {
    Ending::here().inside.fetch_add(1);
    if (Ending::here().is_over_here()) {
      Ending::here().inside.fetch_sub(1);
      throw Error(Status::cancelled, "Python is ending: its functions are no longer called");
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

/// Lets the lock go for the time of a call. A thread that comes back when the program is ending stays here: let further it would be ended
/// by the interpreter, from within C++ that cannot be left so.
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

/// At the program's end, before the interpreter's: from now on its functions are not called from the library's threads, and none is being
/// called. Without the lock held.
inline void end() {
  Ending::here().by.store(std::this_thread::get_id());
  Ending::here().begun.store(true);
  for (int i = 0; i < 10000 && Ending::here().inside.load() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// In the child of a fork: the threads that were inside are not there, and nothing waits for them.
inline void forked() { Ending::here().inside.store(0); }

/// A reference of its own. Copied and dropped without the lock, which is taken for the last one; after the interpreter's end that one
/// leaks.
using Object = std::shared_ptr<PyObject>;

inline void drop(PyObject* object) {
  if (object == nullptr || Py_IsInitialized() == 0) return;
  try {
    const Gil gil;
    Py_DECREF(object);
  } catch (const Error&) {  // the program is ending, and so does the object
  }
}
/// Takes a new reference over.
inline Object owned(PyObject* object) { return Object(object, drop); }
inline Object borrowed(PyObject* object) {
  Py_XINCREF(object);
  return owned(object);
}

/// For messages: what repr() says of an exception.
std::string words_of(PyObject* exception);

/// What a Python function raised, on its way through the library.
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

/// A new reference, or what went wrong as an exception.
inline Object made(PyObject* object) {
  if (object == nullptr) throw Raised();
  return owned(object);
}

/// What the Python layer gave by name: classes of reports, the function that makes an exception.
inline PyObject*& registry() {
  static PyObject* names = nullptr;
  return names;
}
inline PyObject* registered(const char* name) {
  PyObject* found = registry() != nullptr ? PyDict_GetItemString(registry(), name) : nullptr;
  if (found == nullptr) PyErr_Format(PyExc_RuntimeError, "scaletrain: the Python layer has not given %s", name);
  return found;
}
/// registered(name)(*arguments), taking the tuple over.
inline PyObject* construct(const char* name, PyObject* arguments) {
  PyObject* type = registered(name);
  PyObject* result = type != nullptr && arguments != nullptr ? PyObject_CallObject(type, arguments) : nullptr;
  Py_XDECREF(arguments);
  return result;
}

/// function(*arguments); takes the tuple over. A generator or coroutine is refused: nothing of its function has run.
inline Object called(const Object& function, PyObject* arguments) {
  const Object held = made(arguments);
  Object answer = made(PyObject_CallObject(function.get(), held.get()));
  if (answer.get() == Py_None) return answer;
  PyObject* const unstarted = registered("unstarted");
  if (unstarted == nullptr || PyObject_IsInstance(answer.get(), unstarted) != 0) {
    const Object ended = owned(PyObject_CallMethod(answer.get(), "close", nullptr));
    PyErr_Clear();
    throw Error(Status::invalid_argument, "a callback is a generator or async function, so nothing of it has run; give a plain function");
  }
  return answer;
}

/// Bytes that are no UTF-8, as a file's name may have, are what os.fsdecode makes of them.
inline PyObject* to_python(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}

/// Sets this thread's error from the library's: errors.py chooses the class.
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

/// In a catch (...): the C++ exception becomes this thread's error. Ctrl-C comes first: it is why a call was cancelled.
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
