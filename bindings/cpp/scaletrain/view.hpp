// Views: descriptions of arrays, in the host's memory unless they say otherwise. A view borrows; the program keeps the array alive.
#pragma once

#include <scaletrain/view.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <scaletrain/dtype.hpp>
#include <scaletrain/error.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace scaletrain {

/// The dtype of a C++ type.
template <class T>
constexpr DType dtype_of() {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Plain, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<Plain, double>) {
    return DType::f64;
  } else if constexpr (std::is_same_v<Plain, bool>) {
    return DType::boolean;
  } else if constexpr (std::is_integral_v<Plain> && std::is_signed_v<Plain> && sizeof(Plain) == 4) {
    return DType::i32;
  } else if constexpr (std::is_integral_v<Plain> && std::is_signed_v<Plain> && sizeof(Plain) == 8) {
    return DType::i64;
  } else {
    static_assert(std::is_same_v<Plain, unsigned char>, "this type has no dtype; bf16 and f16 take View(dtype, data, dims, bytes)");
    return DType::u8;
  }
}

/// One array: dtype, dims, memory. Rank at most 8.
class View {
 public:
  View() = default;
  View(DType dtype, void* data, const std::vector<int64_t>& dims, int64_t bytes) : View(dtype, data, dims.data(), dims.size(), bytes) {}
  /// Read only: functions that fill a view refuse it.
  View(DType dtype, const void* data, const std::vector<int64_t>& dims, int64_t bytes)
      : View(dtype, const_cast<void*>(data), dims.data(), dims.size(), bytes) {  // the ABI's data is not const; inputs are never written
    writable_ = false;
  }
  explicit View(const st_view& raw) : View(static_cast<DType>(raw.dtype), raw.data, raw.dims, static_cast<size_t>(raw.rank), raw.bytes) {
    if (raw.strides != nullptr) strided(std::vector<int64_t>(raw.strides, raw.strides + raw.rank));
    device_ = raw.device;
  }

  /// The same memory with these strides, in elements.
  View& strided(const std::vector<int64_t>& strides) {
    if (strides.size() != static_cast<size_t>(rank_))
      throw Error(Status::invalid_argument, "View::strided: got " + std::to_string(strides.size()) + " strides for rank " +
                                                std::to_string(rank_) + "; give one for each dimension");
    for (size_t i = 0; i < strides.size(); ++i) strides_[i] = strides[i];
    has_strides_ = true;
    return *this;
  }

  /// The same view, saying whose memory it is: 0 the host's, n that of device n - 1. A call refuses a device that its context does not
  /// have, and most take 0 only (view.h).
  View& on_device(int32_t device) noexcept {
    device_ = device;
    return *this;
  }

  DType dtype() const noexcept { return dtype_; }
  int32_t rank() const noexcept { return rank_; }
  int64_t dim(int32_t i) const { return dims_.at(static_cast<size_t>(i)); }
  std::vector<int64_t> dims() const { return std::vector<int64_t>(dims_.begin(), dims_.begin() + rank_); }
  int64_t bytes() const noexcept { return bytes_; }
  bool writable() const noexcept { return writable_; }
  void* data() const noexcept { return data_; }
  int32_t device() const noexcept { return device_; }
  /// Number of elements.
  int64_t size() const noexcept {
    int64_t product = 1;
    for (size_t i = 0; i < static_cast<size_t>(rank_); ++i) product *= dims_[i];
    return product;
  }
  /// The elements as T, which must be their type.
  template <class T>
  T* as() const {
    if (dtype_of<T>() != dtype_) throw Error(Status::invalid_argument, "View::as: T is not the array's element type; see dtype()");
    return static_cast<T*>(data_);
  }

  /// For the C ABI; points into this view.
  st_view raw() const noexcept {
    return {static_cast<st_dtype>(dtype_), rank_, dims_.data(), has_strides_ ? strides_.data() : nullptr, data_, bytes_, device_, 0};
  }

 private:
  View(DType dtype, void* data, const int64_t* dims, size_t rank, int64_t bytes)
      : dtype_(dtype), rank_(static_cast<int32_t>(rank)), data_(data), bytes_(bytes) {
    if (rank > dims_.size()) throw Error(Status::invalid_argument, "View: rank must be at most 8, got " + std::to_string(rank));
    for (size_t i = 0; i < rank; ++i) dims_[i] = dims[i];
  }

  DType dtype_ = DType::f32;
  int32_t rank_ = 0, device_ = 0;
  std::array<int64_t, 8> dims_{};
  std::array<int64_t, 8> strides_{};
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  bool has_strides_ = false, writable_ = true;
};

/// view(x.data(), {rows, columns})
template <class T>
View view(T* data, std::initializer_list<int64_t> dims) {
  int64_t bytes = sizeof(T);
  for (const int64_t dim : dims) bytes *= dim;
  return View(dtype_of<T>(), data, std::vector<int64_t>(dims), bytes);
}

/// view(x, {rows, columns}) of a std::vector, std::array, std::span: any x with data() and size().
template <class Array, class T = std::remove_pointer_t<decltype(std::declval<Array&>().data())>>
View view(Array& array, std::initializer_list<int64_t> dims) {
  return View(dtype_of<T>(), array.data(), std::vector<int64_t>(dims), static_cast<int64_t>(array.size() * sizeof(T)));
}
/// All of x, with rank 1.
template <class Array, class T = std::remove_pointer_t<decltype(std::declval<Array&>().data())>>
View view(Array& array) {
  return view(array, {static_cast<int64_t>(array.size())});
}

struct NamedView {
  std::string name;
  View view;
};

/// A batch, inputs, outputs: views by name. Reuse one for many steps: a step then allocates nothing.
class Views {
 public:
  Views() = default;
  Views(std::initializer_list<NamedView> views) : Views(std::vector<NamedView>(views)) {}
  explicit Views(std::vector<NamedView> views) : views_(std::move(views)) { describe(); }
  Views(int64_t count, const st_named_view* raw) {
    for (int64_t i = 0; i < count; ++i) views_.push_back({raw[i].name, View(raw[i].view)});
    describe();
  }
  Views(const Views& other) : views_(other.views_) { describe(); }
  Views(Views&&) noexcept = default;  // raw_ points into heap memory, which moves along
  Views& operator=(Views other) noexcept {
    views_.swap(other.views_);
    raw_.swap(other.raw_);
    return *this;
  }
  ~Views() = default;

  Views& add(const std::string& name, const View& view) {
    views_.push_back({name, view});
    describe();
    return *this;
  }
  int64_t size() const noexcept { return static_cast<int64_t>(views_.size()); }
  const NamedView& operator[](int64_t i) const { return views_.at(static_cast<size_t>(i)); }
  const View& at(const std::string& name) const {
    for (const NamedView& named : views_)
      if (named.name == name) return named.view;
    throw Error(Status::not_found, "Views::at: no view is named \"" + name + "\"");
  }
  std::vector<NamedView>::const_iterator begin() const noexcept { return views_.begin(); }
  std::vector<NamedView>::const_iterator end() const noexcept { return views_.end(); }

  /// For the C ABI; points into this object. Null when there are none.
  const st_named_view* raw() const noexcept { return raw_.empty() ? nullptr : raw_.data(); }

 private:
  void describe() {
    raw_.clear();
    for (const NamedView& named : views_) raw_.push_back({named.name.c_str(), named.view.raw()});
  }

  std::vector<NamedView> views_;
  std::vector<st_named_view> raw_;
};

namespace detail {

/// `name`: of the view among several; "": there is one.
inline const View& writable(const char* call, const View& view, const std::string& name = {}) {
  if (!view.writable())
    throw Error(Status::invalid_argument, std::string(call) + (name.empty() ? ": the array" : " \"" + name + "\"") +
                                              " is read-only; give an array that can be written");
  return view;
}

}  // namespace detail

/// Copies and converts elements between views of the same dims: any dtype to a floating one, integers to integers that hold them.
inline void convert(const View& from, const View& to) {
  const st_view source = from.raw(), target = detail::writable("convert", to).raw();
  check(st_view_convert(&source, &target));
}

}  // namespace scaletrain
