// Memory of the library as a Python object with the buffer protocol, which memoryview, NumPy and PyTorch use in place.
#pragma once

#include <functional>
#include <vector>

#include "array.hpp"

namespace scaletrain::python {

/// The view that a Memory exposes, and the object that keeps its memory alive.
struct Shown {
  View view;
  Object owner;                     // kept as long as the Memory
  std::function<void()> give_back;  // called when the Memory is freed
  std::vector<Py_ssize_t> dims, strides;
  Py_ssize_t exports = 0;
  bool is_dense = true;  // row-major without gaps
  bool is_over = false;  // set for a callback's arrays when it has returned
};

struct MemoryObject {
  PyObject_HEAD Shown* shown;
};

namespace memory {

inline Shown* shown_of(PyObject* self) { return reinterpret_cast<MemoryObject*>(self)->shown; }

inline int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
  Shown* const shown = shown_of(self);
  buffer->obj = nullptr;
  if (shown->is_over) {
    PyErr_SetString(PyExc_BufferError, "scaletrain: this memory is no longer valid");
    return -1;
  }
  const View& view = shown->view;
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && !view.writable()) {
    PyErr_SetString(PyExc_BufferError, "scaletrain: this memory is read-only");
    return -1;
  }
  const bool is_whole = (flags & PyBUF_STRIDES) != PyBUF_STRIDES || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  if ((is_whole && !shown->is_dense) || ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && view.rank() > 1)) {
    PyErr_SetString(PyExc_BufferError, "scaletrain: this memory does not have the requested strides; copy it");
    return -1;
  }
  static char nothing = 0;
  Py_INCREF(self);
  buffer->obj = self;
  buffer->buf = view.data() != nullptr ? view.data() : &nothing;
  buffer->len = static_cast<Py_ssize_t>(view.size() * bytes_of(view.dtype()));
  buffer->itemsize = static_cast<Py_ssize_t>(bytes_of(view.dtype()));
  buffer->readonly = view.writable() ? 0 : 1;
  buffer->ndim = view.rank();
  buffer->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format_of(view.dtype())) : nullptr;  // never written
  buffer->shape = (flags & PyBUF_ND) != 0 ? shown->dims.data() : nullptr;
  buffer->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shown->strides.data() : nullptr;
  buffer->suboffsets = nullptr;
  buffer->internal = nullptr;
  ++shown->exports;
  return 0;
}
inline void release_buffer(PyObject* self, Py_buffer*) { --shown_of(self)->exports; }

inline void deallocate(PyObject* self) {
  Shown* const shown = shown_of(self);
  if (shown->give_back) shown->give_back();
  delete shown;
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

inline PyObject* exports(PyObject* self, void*) { return PyLong_FromSsize_t(shown_of(self)->exports); }
inline PyObject* dtype(PyObject* self, void*) { return PyLong_FromLong(static_cast<long>(shown_of(self)->view.dtype())); }
inline PyObject* address(PyObject* self, void*) { return PyLong_FromVoidPtr(shown_of(self)->view.data()); }

inline PyTypeObject* type() {
  static PyTypeObject* const made = [] {
    static PyGetSetDef attributes[] = {{"exports", exports, nullptr, "Number of its buffers that are in use.", nullptr},
                                       {"dtype", dtype, nullptr, "Number of the dtype.", nullptr},
                                       {"address", address, nullptr, "Address of the first element.", nullptr},
                                       {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                  {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                                  {Py_tp_getset, attributes},
                                  {0, nullptr}};
    static PyType_Spec spec = {"scaletrain.Memory", sizeof(MemoryObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }();
  return made;
}

}  // namespace memory

inline View read_only(const View& view) {
  View same(view.dtype(), static_cast<const void*>(view.data()), view.dims(), view.bytes());
  const st_view raw = view.raw();
  if (raw.strides != nullptr) same.strided(std::vector<int64_t>(raw.strides, raw.strides + raw.rank));
  return same;
}

/// A new Memory over `view`; null if this fails, with the thread's error set. `give_back` is called when the Memory is freed, and if this
/// fails.
inline PyObject* show(const View& view, Object owner, std::function<void()> give_back) {
  PyTypeObject* const type = memory::type();
  auto* const self = type == nullptr ? nullptr : PyObject_New(MemoryObject, type);
  if (self == nullptr) {
    if (give_back) give_back();
    return nullptr;
  }
  self->shown = new Shown{view, std::move(owner), std::move(give_back), {}, {}, 0, true, false};
  const Py_ssize_t item = static_cast<Py_ssize_t>(bytes_of(view.dtype()));
  for (const int64_t dim : view.dims()) self->shown->dims.push_back(static_cast<Py_ssize_t>(dim));
  self->shown->strides.resize(self->shown->dims.size());
  const int64_t* const given = view.raw().strides;
  Py_ssize_t dense = item;
  for (size_t i = self->shown->dims.size(); i-- > 0; dense *= self->shown->dims[i]) {
    self->shown->strides[i] = given != nullptr ? static_cast<Py_ssize_t>(given[i]) * item : dense;
    self->shown->is_dense &= self->shown->strides[i] == dense || self->shown->dims[i] == 1 || view.size() == 0;
  }
  return reinterpret_cast<PyObject*>(self);
}

/// The arrays of a callback, as memoryviews that are released when it returns. A view without memory becomes None.
class BorrowedArray {
 public:
  BorrowedArray() = default;
  BorrowedArray(const BorrowedArray&) = delete;
  ~BorrowedArray() {
    for (const Object& memory : memories_) memory::shown_of(memory.get())->is_over = true;
  }

  /// A new tuple of memoryviews, for the arguments of call().
  PyObject* lend(const std::vector<View>& views, bool writable) {
    PyObject* const all = PyTuple_New(static_cast<Py_ssize_t>(views.size()));
    for (size_t i = 0; all != nullptr && i < views.size(); ++i) {
      PyObject* const item = lend(views[i], writable);
      if (item == nullptr) {
        Py_DECREF(all);
        return nullptr;
      }
      PyTuple_SetItem(all, static_cast<Py_ssize_t>(i), item);
    }
    return all;
  }

  PyObject* lend(const View& view, bool writable) {
    return view.data() == nullptr ? Py_NewRef(Py_None) : seen(writable ? view : read_only(view));
  }

  /// Calls function(*arguments) and takes the tuple over. Afterwards, unless `is_kept`, the memoryviews are released. If the function has
  /// kept one, or a NumPy array over one, which cannot be released, the call is refused. If the function raised, the variables in its
  /// frames may be such arrays; the frames are cleared, so that a debugger does not read them.
  void call(const char* callback, const Object& function, PyObject* arguments, bool is_kept = false) {
    try {
      called(function, arguments);
    } catch (const Raised& raised) {
      release();
      if (is_in_use()) {
        Py_XDECREF(construct("forget_frames", Py_BuildValue("(O)", raised.value())));
        PyErr_Clear();
      }
      throw;
    }
    if (!is_kept && (release() || is_in_use()))
      refuse(std::string(callback) + ": an array borrowed for this call is still in use after it has returned; keep a copy instead");
  }
  /// Releases the memoryviews that still exist. Returns whether there were any.
  bool release() const {
    bool was_kept = false;
    for (const Object& weak : memoryviews_) {
      PyObject* const kept = weak ? PyWeakref_GetObject(weak.get()) : Py_None;
      if (kept == Py_None) continue;
      was_kept = true;
      Py_XDECREF(PyObject_CallMethod(kept, "release", nullptr));
      PyErr_Clear();  // fails if an array uses it
    }
    return was_kept;
  }

 private:
  PyObject* seen(const View& view) {
    memories_.push_back(made(show(view, Object(), nullptr)));
    PyObject* const memoryview = PyMemoryView_FromObject(memories_.back().get());
    memoryviews_.push_back(owned(memoryview != nullptr ? PyWeakref_NewRef(memoryview, nullptr) : nullptr));
    return memoryview;
  }
  bool is_in_use() const {
    for (const Object& memory : memories_)
      if (memory::shown_of(memory.get())->exports != 0) return true;
    return false;
  }

  std::vector<Object> memories_, memoryviews_;  // memoryviews_ holds weak references
};

}  // namespace scaletrain::python
