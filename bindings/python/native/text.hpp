// Texts: Python's str as UTF-8, and what messages say of an object.
#pragma once

#include <scaletrain/error.hpp>
#include <string>

#include "object.hpp"

namespace scaletrain::python {

[[noreturn]] inline void refuse(const std::string& what) { throw Error(Status::invalid_argument, what); }

/// Of the wrong type altogether: a TypeError.
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

/// For messages: the first `most` characters of a str; takes it over. Null: what could not be made.
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
/// For messages: what repr() says.
inline std::string shown(PyObject* object) { return plain(PyObject_Repr(object), 60); }
inline std::string words_of(PyObject* exception) { return plain(PyObject_Repr(exception), 300); }

/// A str, or bytes as os.fsencode gives them. The C ABI's texts end with a NUL, so there is none inside.
inline std::string text_of(PyObject* object, const std::string& name) {
  char* text = nullptr;
  Py_ssize_t length = 0;
  if (PyUnicode_Check(object) != 0) {
    text = const_cast<char*>(PyUnicode_AsUTF8AndSize(object, &length));
    if (text == nullptr) {
      PyErr_Clear();
      refuse(name + ": " + shown(object) + " is not Unicode: it has half of a surrogate pair");
    }
  } else if (PyBytes_Check(object) == 0 || PyBytes_AsStringAndSize(object, &text, &length) != 0) {
    refuse_type(name + ": a text is wanted, not " + shown(object) + " (" + type_name(object) + ")");
  }
  std::string copy(text, static_cast<size_t>(length));
  if (copy.find('\0') != std::string::npos) refuse(name + ": " + shown(object) + " has a NUL character, which ends a text in C");
  return copy;
}

}  // namespace scaletrain::python
