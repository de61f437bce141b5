// Strings: Python's str as UTF-8, and the description of an object in messages.
#pragma once

#include <scaletrain/error.hpp>
#include <string>

#include "object.hpp"

namespace scaletrain::python {

[[noreturn]] inline void refuse(const std::string& what) { throw Error(Status::invalid_argument, what); }

/// Raises TypeError, for an argument of the wrong type.
[[noreturn]] inline void refuse_type(const std::string& what) {
  PyErr_SetString(PyExc_TypeError, what.c_str());
  throw Raised();
}

inline std::string type_name(PyObject* object) {
  const Object name = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
  const char* text = name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "object" : text;
}

/// For messages: the first `most` characters of a str, whose reference it takes over; "..." for null.
inline std::string plain(PyObject* text, Py_ssize_t most) {
  const Object whole = owned(text);
  const Object start = whole ? owned(PyUnicode_Substring(whole.get(), 0, most)) : Object();
  const Object bytes = start ? owned(PyUnicode_AsEncodedString(start.get(), "utf-8", "backslashreplace")) : Object();
  if (!bytes) {
    PyErr_Clear();
    return "...";
  }
  return PyBytes_AsString(bytes.get()) + std::string(PyUnicode_GetLength(whole.get()) > most ? "..." : "");
}
/// For messages: the repr() of an object.
inline std::string shown(PyObject* object) { return plain(PyObject_Repr(object), 60); }
inline std::string words_of(PyObject* exception) { return plain(PyObject_Repr(exception), 300); }

/// The text of a str, or of bytes from os.fsencode. It may not contain a NUL, which ends a string in C.
inline std::string text_of(PyObject* object, const std::string& name) {
  char* text = nullptr;
  Py_ssize_t length = 0;
  if (PyUnicode_Check(object) != 0) {
    text = const_cast<char*>(PyUnicode_AsUTF8AndSize(object, &length));
    if (text == nullptr) {
      PyErr_Clear();
      refuse(name + " must be valid Unicode, got " + shown(object) + ", which has an unpaired surrogate");
    }
  } else if (PyBytes_Check(object) == 0 || PyBytes_AsStringAndSize(object, &text, &length) != 0) {
    refuse_type(name + " must be a str, got " + shown(object) + " (" + type_name(object) + ")");
  }
  std::string copy(text, static_cast<size_t>(length));
  if (copy.find('\0') != std::string::npos) refuse(name + " must not contain a NUL character, got " + shown(object));
  return copy;
}

}  // namespace scaletrain::python
