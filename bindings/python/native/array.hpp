// A Python array as a view, without a copy: an object with the buffer protocol (NumPy, array, memoryview, bytearray) or DLPack (PyTorch and
// others).
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <scaletrain/view.hpp>
#include <string>
#include <vector>

#include "dlpack.hpp"
#include "text.hpp"

namespace scaletrain::python {

constexpr const char* kFormats = "f f32, d f64, e f16, i i32, q or l i64, B u8, ? bool";

/// The dtype of a buffer's format, in the notation of the struct module: an optional byte order and a letter.
inline std::optional<DType> dtype_of_format(const char* format, Py_ssize_t itemsize) {
  const std::string text = format == nullptr ? "B" : format;
  const char order = text.empty() ? '?' : text.front();
  const bool ordered = order == '@' || order == '=' || order == '<';  // '>' and '!' are big-endian
  if (text.size() != (ordered ? 2U : 1U)) return std::nullopt;
  switch (text.back()) {
    case 'f':
      return DType::f32;
    case 'd':
      return DType::f64;
    case 'e':
      return DType::f16;
    case 'i':
    case 'l':
    case 'q':
      if (itemsize == 4) return DType::i32;
      return itemsize == 8 ? std::optional(DType::i64) : std::nullopt;
    case 'B':
      return DType::u8;
    case '?':
      return DType::boolean;
    default:
      return std::nullopt;
  }
}

/// The letter in the struct module; bf16, which has none, is exposed as 16-bit unsigned integers.
inline const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f";
    case DType::f64:
      return "d";
    case DType::bf16:
      return "H";
    case DType::f16:
      return "e";
    case DType::i32:
      return "i";
    case DType::i64:
      return "q";
    case DType::u8:
      return "B";
    case DType::boolean:
      return "?";
  }
  return "B";
}

/// The tensor in a DLPack capsule. Throws if the capsule has been consumed already, or if it is another object.
inline DLManagedTensor* managed_of(PyObject* capsule, const std::string& name) {
  if (PyCapsule_IsValid(capsule, "dltensor") != 0) return static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  refuse(
      name + ": __dlpack__() must return a new capsule \"dltensor\", got " +
      (PyCapsule_IsValid(capsule, "used_dltensor") != 0 ? std::string("one whose tensor was taken already") : "a " + type_name(capsule)));
}

/// Holds an array, which its owner can then neither free nor resize. Create, move and destroy it with the interpreter's lock held.
class Array {
 public:
  Array() = default;
  /// `name` is the array's name in messages. Throws Error or Raised.
  Array(PyObject* object, const std::string& name) : Array() { take(object, name); }  // delegates, so that ~Array() runs if take() throws
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array other) noexcept {
    swap(other);
    return *this;
  }
  Array(const Array&) = delete;
  ~Array() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
    Py_XDECREF(capsule_);
  }

  const View& view() const noexcept { return view_; }

  static View view_of(const DLTensor& tensor, const std::string& name) {
    const std::vector<int64_t> dims(tensor.shape, tensor.shape + tensor.ndim);
    const DType dtype = dtype_of_dlpack(name, tensor.dtype);
    int64_t bytes = bytes_of(dtype);
    for (const int64_t dim : dims) bytes *= dim;
    View view(dtype, static_cast<void*>(static_cast<char*>(tensor.data) + tensor.byte_offset), dims, bytes);
    if (tensor.strides != nullptr) view.strided(std::vector<int64_t>(tensor.strides, tensor.strides + tensor.ndim));
    return view;
  }

 private:
  void swap(Array& other) noexcept {
    std::swap(buffer_, other.buffer_);
    std::swap(capsule_, other.capsule_);
    std::swap(view_, other.view_);
  }

  void take(PyObject* object, const std::string& name) {
    PyObject* const bf16 = registered("Bf16");
    if (bf16 == nullptr) throw Raised();
    if (PyObject_IsInstance(object, bf16) == 1) {
      const Object bits = made(PyObject_GetAttrString(object, "bits"));
      return from_buffer(bits.get(), name, true);
    }
    if (PyObject_CheckBuffer(object)) return from_buffer(object, name, false);
    if (PyObject_HasAttrString(object, "__dlpack__") == 1) return from_dlpack(object, name);
    refuse(name + " must be an array with the buffer protocol (NumPy, array.array, memoryview) or DLPack (PyTorch), got a " +
           type_name(object));
  }

  void from_buffer(PyObject* object, const std::string& name, bool is_bf16) {
    if (PyObject_GetBuffer(object, &buffer_, PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE) != 0) {
      PyErr_Clear();  // read-only; the call decides whether that is allowed
      if (PyObject_GetBuffer(object, &buffer_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
        buffer_.obj = nullptr;
        refuse_as_said(name);
      }
    }
    std::optional<DType> dtype = dtype_of_format(buffer_.format, buffer_.itemsize);
    if (is_bf16) {
      const std::string format = buffer_.format == nullptr ? "B" : buffer_.format;
      dtype = format == "H" || format == "<H" || format == "=H" || format == "@H" ? std::optional(DType::bf16) : std::nullopt;
      if (!dtype) refuse(name + ": Bf16 takes the bits as 16-bit unsigned integers (format H), got format \"" + format + "\"");
    }
    if (!dtype) {
      const std::string format = buffer_.format == nullptr ? "B" : buffer_.format;
      const bool foreign = !format.empty() && (format.front() == '>' || format.front() == '!');
      refuse(name + ": the array's format \"" + format + "\" " +
             (foreign ? "has the other byte order; convert it to this machine's (NumPy: a.astype(a.dtype.newbyteorder('=')))"
                      : std::string("is not supported; supported are ") + kFormats));
    }
    describe(name, *dtype, buffer_.buf, buffer_.ndim, [&](int i) { return static_cast<int64_t>(buffer_.shape[i]); });
    if (buffer_.strides == nullptr || PyBuffer_IsContiguous(&buffer_, 'C')) return;
    std::vector<int64_t> strides;
    for (int i = 0; i < buffer_.ndim; ++i) {
      if (buffer_.strides[i] % buffer_.itemsize != 0)
        refuse(name + ": the array's strides must be multiples of the element size; copy it (NumPy: numpy.ascontiguousarray)");
      strides.push_back(buffer_.strides[i] / buffer_.itemsize);
    }
    set_strides(name, strides);
  }

  /// Refuses with the text of the array's own exception, prefixed with the name.
  [[noreturn]] static void refuse_as_said(const std::string& name) {
    const bool is_refusal =
        PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError);
    const Raised raised;
    if (!is_refusal) throw raised;
    refuse(name + ": the array's memory cannot be accessed: " + plain(PyObject_Str(raised.value()), 300));
  }

  /// Refuses PyTorch's lazily negated tensors, whose sign is not in their memory and which DLPack cannot express. For conjugated tensors
  /// PyTorch's __dlpack__() raises by itself.
  static void require_no_lazy_sign(PyObject* object, const std::string& name) {
    if (PyObject_HasAttrString(object, "is_neg") != 1) return;
    const Object answer = made(PyObject_CallMethod(object, "is_neg", nullptr));
    if (answer.get() == Py_True)
      refuse(name + ": the tensor is lazily negated (is_neg()), so its memory has the wrong sign; pass its resolve_neg()");
  }

  static void require_host_memory(int64_t device, const std::string& name) {
    if (device != kDlpackCpu && device != kDlpackCudaHost)
      refuse(
          name + ": the array is on DLPack device " + name_of_dlpack_device(device) +
          "; allowed is the host's memory, kDLCPU (1) and kDLCUDAHost (3), and a Tensor of the context's device: copy it to the host first "
          "(PyTorch: .cpu()), or pass Tensor.from_dlpack(context, array)");
  }

  /// The device's number in views of a Tensor in the memory of a device; 0 for any other object.
  static int32_t number_of_tensor(PyObject* object) {
    PyObject* const tensor = registered("Tensor");
    if (tensor == nullptr) throw Raised();
    if (PyObject_IsInstance(object, tensor) != 1) return 0;
    const Object number = made(PyObject_GetAttrString(object, "_device"));
    const long value = PyLong_AsLong(number.get());
    if (value == -1 && PyErr_Occurred()) throw Raised();
    return static_cast<int32_t>(value);
  }

  void from_dlpack(PyObject* object, const std::string& name) {
    require_no_lazy_sign(object, name);
    const Object device = made(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
    const Object kind = made(PySequence_GetItem(device.get(), 0));
    const long on = PyLong_AsLong(kind.get());
    if (on == -1 && PyErr_Occurred()) throw Raised();
    const int32_t number = number_of_tensor(object);
    if (number == 0) require_host_memory(on, name);
    capsule_ = number == 0 ? PyObject_CallMethod(object, "__dlpack__", nullptr) : PyObject_CallMethod(object, "_capsule", nullptr);
    if (capsule_ == nullptr) throw Raised();
    // Not renamed to "used_dltensor": the capsule keeps the memory and releases it when it is freed.
    const auto* managed = managed_of(capsule_, name);
    const DLTensor& tensor = managed->dl_tensor;
    if (number == 0) require_host_memory(tensor.device.device_type, name);
    describe(name, dtype_of_dlpack(name, tensor.dtype), static_cast<char*>(tensor.data) + tensor.byte_offset, tensor.ndim,
             [&](int i) { return tensor.shape[i]; });
    view_.on_device(number);
    if (tensor.strides == nullptr) return;
    const std::vector<int64_t> strides(tensor.strides, tensor.strides + tensor.ndim);
    int64_t dense = 1;
    bool is_dense = true;
    for (int i = tensor.ndim - 1; i >= 0; dense *= tensor.shape[i--])
      is_dense &= tensor.shape[i] == 1 || strides[static_cast<size_t>(i)] == dense;
    if (!is_dense && view_.size() != 0) set_strides(name, strides);
  }

  static DType dtype_of_dlpack(const std::string& name, const DLDataType& type) {
    enum { kInt = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6 };
    if (type.lanes == 1) {
      const int code = type.code, bits = type.bits;
      if (code == kFloat && bits == 32) return DType::f32;
      if (code == kFloat && bits == 64) return DType::f64;
      if (code == kFloat && bits == 16) return DType::f16;
      if (code == kBfloat && bits == 16) return DType::bf16;
      if (code == kInt && bits == 32) return DType::i32;
      if (code == kInt && bits == 64) return DType::i64;
      if (code == kUnsigned && bits == 8) return DType::u8;
      if (code == kBool && bits == 8) return DType::boolean;
    }
    refuse(name + ": the dtype must be one of f32, f64, bf16, f16, i32, i64, u8, bool, got DLPack type code " + std::to_string(type.code) +
           " with " + std::to_string(type.bits) + " bits");
  }

  template <class Dim>
  void describe(const std::string& name, DType dtype, void* data, int rank, const Dim& dim) {
    if (rank > 8) refuse(name + ": the array must have at most 8 dimensions, got " + std::to_string(rank));
    std::vector<int64_t> dims;
    int64_t bytes = bytes_of(dtype);
    for (int i = 0; i < rank; ++i) {
      dims.push_back(dim(i));
      bytes *= dims.back();
    }
    if (buffer_.obj != nullptr && buffer_.readonly != 0) {
      view_ = View(dtype, static_cast<const void*>(data), dims, bytes);
    } else {
      view_ = View(dtype, data, dims, bytes);
    }
  }

  void set_strides(const std::string& name, const std::vector<int64_t>& strides) {
    int64_t last = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
      if (strides[i] < 0) refuse(name + ": the array's strides must not be negative; copy it (NumPy: numpy.ascontiguousarray)");
      last += (view_.dim(static_cast<int32_t>(i)) - 1) * strides[i];
    }
    const int64_t bytes = view_.size() == 0 ? 0 : (last + 1) * bytes_of(view_.dtype());
    const std::vector<int64_t> dims = view_.dims();
    const int32_t device = view_.device();
    view_ = view_.writable() ? View(view_.dtype(), view_.data(), dims, bytes)
                             : View(view_.dtype(), static_cast<const void*>(view_.data()), dims, bytes);
    view_.strided(strides).on_device(device);
  }

  Py_buffer buffer_{};
  PyObject* capsule_ = nullptr;
  View view_;
};

/// Several arrays: from a list for std::vector<View>, from a dict for Views. None in a list becomes an empty view.
class Arrays {
 public:
  Arrays() = default;
  static Arrays of_list(PyObject* list, const char* name) {
    Arrays all;
    const Object items = made(PySequence_Fast_(list, name));
    const Py_ssize_t count = PyTuple_Size(items.get());
    all.held_.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const item = PyTuple_GetItem(items.get(), i);
      if (item == Py_None) {
        all.list_.emplace_back();
        continue;
      }
      all.held_.emplace_back(item, std::string(name) + "[" + std::to_string(i) + "]");
      all.list_.push_back(all.held_.back().view());
    }
    return all;
  }
  static Arrays of_dict(PyObject* dict) {
    Arrays all;
    if (dict == Py_None) return all;
    if (!PyDict_Check(dict)) refuse("arrays must be passed by name, as a dict {\"x\": array}, got a " + type_name(dict));
    const Object items = made(PyDict_Items(dict));  // a copy, since taking an array may run Python code that changes the dict
    const Py_ssize_t count = PyList_Size(items.get());
    std::vector<NamedView> named;
    named.reserve(static_cast<size_t>(count));
    all.held_.reserve(named.capacity());
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const item = PyList_GetItem(items.get(), i);
      PyObject* const key = PyTuple_GetItem(item, 0);
      if (PyUnicode_Check(key) == 0) refuse("arrays must be passed by name: the keys of the dict must be str, got a " + type_name(key));
      std::string name = text_of(key, "the name of an array");
      all.held_.emplace_back(PyTuple_GetItem(item, 1), name);
      named.push_back({std::move(name), all.held_.back().view()});
    }
    all.named_ = Views(std::move(named));
    return all;
  }

  /// The arrays of a dict as an object that keeps them in place. Calls accept it instead of the dict.
  static PyObject* kept(PyObject* dict) {
    auto all = std::make_unique<Arrays>(of_dict(dict));
    PyObject* const capsule =
        PyCapsule_New(all.get(), kKept, [](PyObject* of) { delete static_cast<Arrays*>(PyCapsule_GetPointer(of, kKept)); });
    if (capsule == nullptr) throw Raised();
    static_cast<void>(all.release());
    return capsule;
  }
  /// The arrays of such an object; null for anything else.
  static const Arrays* kept_by(PyObject* object) {
    return PyCapsule_IsValid(object, kKept) != 0 ? static_cast<const Arrays*>(PyCapsule_GetPointer(object, kKept)) : nullptr;
  }

  const std::vector<View>& list() const noexcept { return list_; }
  const Views& named() const noexcept { return named_; }

 private:
  static constexpr const char* kKept = "scaletrain.arrays";
  static PyObject* PySequence_Fast_(PyObject* list, const char* name) {
    if (PyUnicode_Check(list) || PyObject_CheckBuffer(list))
      refuse(std::string(name) + " must be a list of arrays, got a " + type_name(list));
    return PySequence_Tuple(list);
  }

  std::vector<Array> held_;
  std::vector<View> list_;
  Views named_;
};

}  // namespace scaletrain::python
