// Converts reports and lists to Python: named tuples of the Python layer, lists of numbers and strings.
#pragma once

#include <scaletrain/checkpoint.hpp>
#include <scaletrain/context.hpp>
#include <scaletrain/gemm.hpp>
#include <scaletrain/graph.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/optimizer.hpp>
#include <scaletrain/trainer.hpp>
#include <vector>

#include "array.hpp"
#include "number.hpp"

namespace scaletrain::python {

inline PyObject* new_reference(const Object& object) {
  Py_XINCREF(object.get());
  return object.get();
}

template <class Integer = int64_t>
std::vector<Integer> integers_of(PyObject* object, const char* name) {
  const Object list = owned(PyUnicode_Check(object) != 0 ? nullptr : PySequence_Tuple(object));
  if (!list) {
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw Raised();
    PyErr_Clear();
    refuse_type(std::string(name) + " must be a sequence of integers, got " + shown(object) + " (" + type_name(object) + ")");
  }
  std::vector<Integer> all;
  for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i)
    all.push_back(integer_of<Integer>(PyTuple_GetItem(list.get(), i), std::string(name) + "[" + std::to_string(i) + "]"));
  return all;
}

inline std::vector<std::string> texts_of(PyObject* object, const char* name) {
  if (PyUnicode_Check(object) != 0) refuse_type(std::string(name) + " must be a list of str, got one str, " + shown(object));
  const Object list = made(PySequence_Tuple(object));
  std::vector<std::string> all;
  for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i)
    all.push_back(text_of(PyTuple_GetItem(list.get(), i), std::string(name) + "[" + std::to_string(i) + "]"));
  return all;
}

/// The attributes in a dict; each is a bool, an int, a float, a str or a list of ints.
inline std::vector<Attribute> attributes_of(PyObject* dict) {
  std::vector<Attribute> all;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value) != 0;) {
    const std::string name = text_of(key, "the name of an attribute");
    if (PyBool_Check(value)) {
      all.emplace_back(name, value == Py_True);
    } else if (PyLong_Check(value)) {
      all.emplace_back(name, integer_of<int64_t>(value, name));
    } else if (PyFloat_Check(value)) {
      all.emplace_back(name, PyFloat_AsDouble(value));
    } else if (PyUnicode_Check(value)) {
      all.emplace_back(name, text_of(value, name).c_str());
    } else {
      all.emplace_back(name, integers_of(value, name.c_str()));
    }
  }
  return all;
}

/// A new tuple of element(one) for each `one` in `all`; `element` returns a new reference.
template <class List, class Element>
PyObject* tuple_of(const List& all, const Element& element) {
  PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(all.size()));
  Py_ssize_t i = 0;
  for (const auto& one : all) {
    PyObject* const item = tuple != nullptr ? element(one) : nullptr;
    if (item == nullptr) {
      Py_XDECREF(tuple);
      return nullptr;
    }
    PyTuple_SetItem(tuple, i++, item);
  }
  return tuple;
}

inline PyObject* to_python(const std::vector<int64_t>& integers) {
  return tuple_of(integers, [](int64_t value) { return PyLong_FromLongLong(value); });
}
inline PyObject* to_python(const std::vector<std::string>& texts) {
  return tuple_of(texts, [](const std::string& text) { return to_python(text); });
}

inline PyObject* to_python(const StepReport& report) {
  return construct("StepReport",
                   Py_BuildValue("(NLddddLddLdNL)", PyBool_FromLong(report.skipped ? 1 : 0), static_cast<long long>(report.step),
                                 report.loss, report.lr, report.grad_norm, report.loss_scale, static_cast<long long>(report.tokens),
                                 report.tokens_per_second, report.milliseconds, static_cast<long long>(report.memory_bytes),
                                 report.gradient_noise_scale, report.save_error.empty() ? Py_NewRef(Py_None) : to_python(report.save_error),
                                 static_cast<long long>(report.saved_step)));
}
inline PyObject* to_python(const OptimizerReport& report) {
  return construct("OptimizerReport", Py_BuildValue("(NLdd)", PyBool_FromLong(report.skipped ? 1 : 0), static_cast<long long>(report.step),
                                                    report.lr, report.norm));
}
inline PyObject* to_python(const Evaluation& evaluation) {
  PyObject* const metrics = PyDict_New();
  for (const Metric& metric : evaluation.metrics) {
    const Object mean = owned(PyFloat_FromDouble(metric.mean));
    if (metrics == nullptr || !mean || PyDict_SetItemString(metrics, metric.name.c_str(), mean.get()) != 0) {
      Py_XDECREF(metrics);
      return nullptr;
    }
  }
  return construct("Evaluation", Py_BuildValue("(ddN)", evaluation.loss, evaluation.count, metrics));
}
inline PyObject* to_python(const MemoryStats& stats) {
  PyObject* const roles = tuple_of(stats.roles, [](const MemoryUse& use) {
    return construct("MemoryUse",
                     Py_BuildValue("(sLL)", use.role.c_str(), static_cast<long long>(use.bytes), static_cast<long long>(use.peak_bytes)));
  });
  return construct("MemoryStats",
                   Py_BuildValue("(LLLLLN)", static_cast<long long>(stats.allocated_bytes), static_cast<long long>(stats.available_bytes),
                                 static_cast<long long>(stats.resident_bytes), static_cast<long long>(stats.peak_bytes),
                                 static_cast<long long>(stats.limit_bytes), roles));
}
inline PyObject* to_python(const ParameterInfo& info) {
  return construct("ParameterInfo", Py_BuildValue("(siNN)", info.name.c_str(), static_cast<int>(info.dtype), to_python(info.dims),
                                                  PyBool_FromLong(info.trainable ? 1 : 0)));
}
inline PyObject* to_python(const ReadReport& report) {
  return construct("ReadReport",
                   Py_BuildValue("(LNN)", static_cast<long long>(report.read), to_python(report.missing), to_python(report.unexpected)));
}
/// The metadata is passed as JSON text.
inline PyObject* to_python(const LoadReport& report) {
  return construct("LoadReport", Py_BuildValue("(LNNLNNNN)", static_cast<long long>(report.step), to_python(report.name),
                                               to_python(report.metadata), static_cast<long long>(report.read), to_python(report.missing),
                                               to_python(report.unexpected), to_python(report.skipped), to_python(report.changed)));
}
inline PyObject* to_python(const SaveProgress& progress) {
  return construct("SaveProgress",
                   Py_BuildValue("(LLLLLLdd)", static_cast<long long>(progress.bytes_done), static_cast<long long>(progress.bytes_all),
                                 static_cast<long long>(progress.waiting), static_cast<long long>(progress.saved),
                                 static_cast<long long>(progress.failed), static_cast<long long>(progress.saved_step),
                                 progress.blocked_seconds, progress.write_seconds));
}
inline PyObject* to_python(const ValueInfo& info) { return Py_BuildValue("(iN)", static_cast<int>(info.dtype), to_python(info.dims)); }

}  // namespace scaletrain::python
