// Converts Python numbers exactly. A number that does not fit, or an object of another type, is refused with its name and value.
#pragma once

#include <cmath>
#include <limits>

#include "text.hpp"

namespace scaletrain::python {

/// The value of an int, or of an object with __index__ (NumPy's integers).
template <class Integer>
Integer integer_of(PyObject* object, const std::string& name) {
  const Object index = owned(PyNumber_Index(object));
  if (!index) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw Raised();
    PyErr_Clear();
    refuse_type(name + " must be an integer, got " + shown(object) + " (" + type_name(object) + ")");
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow != 0 || value < std::numeric_limits<Integer>::min() || value > std::numeric_limits<Integer>::max())
    refuse(name + " must be between " + std::to_string(std::numeric_limits<Integer>::min()) + " and " +
           std::to_string(std::numeric_limits<Integer>::max()) + ", got " + shown(index.get()));
  return static_cast<Integer>(value);
}

/// The value of a float, or of an object with __float__ or __index__.
template <class Real>
Real real_of(PyObject* object, const std::string& name) {
  const double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    const bool is_too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    if (!is_too_large && PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw Raised();
    PyErr_Clear();
    if (is_too_large) refuse(name + " must fit in a 64-bit float, got " + shown(object));
    refuse_type(name + " must be a number, got " + shown(object) + " (" + type_name(object) + ")");
  }
  if (std::isfinite(value) && std::abs(value) > static_cast<double>(std::numeric_limits<Real>::max()))
    refuse(name + " must fit in a 32-bit float, got " + shown(object));
  return static_cast<Real>(value);
}

/// The value of a bool, or of NumPy's bool.
inline bool truth_of(PyObject* object, const std::string& name) {
  if (object == Py_True || object == Py_False) return object == Py_True;
  const std::string type = type_name(object);
  const int truth = type == "bool" || type == "bool_" ? PyObject_IsTrue(object) : -1;  // NumPy 2 and 1
  if (truth < 0) {
    PyErr_Clear();
    refuse_type(name + " must be True or False, got " + shown(object) + " (" + type + ")");
  }
  return truth != 0;
}

}  // namespace scaletrain::python
