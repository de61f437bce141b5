// Java arrays as views. Direct buffers are used in place; heap arrays are copied, and copied back after a call that writes.
#pragma once

#include <cstdlib>
#include <cstring>
#include <scaletrain/view.hpp>
#include <string_view>
#include <vector>

#include "jobject.hpp"

namespace scaletrain::java {

/// Indices into org.scaletrain.Array's header.
struct Header {
  enum : int {
    kAddress,
    kBytes,
    kDType,
    kReadOnly,
    kRank,
    kStrided,
    kHeap,
    kHeapOffset,
    kDevice,
    kDims,
    kStrides = kDims + 8,
    kCount = kStrides + 8
  };
};

/// An Array borrowed for one call. A heap array is copied in, and copied out if the call writes.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Borrowed(Borrowed&& other) noexcept
      : view_(other.view_),
        copy_(std::move(other.copy_)),
        env_(other.env_),
        heap_(other.heap_),
        heap_offset_(other.heap_offset_),
        bytes_(other.bytes_) {
    other.env_ = nullptr;
  }
  /// Copies out even after a failed call, since direct memory would also show what such a call wrote.
  ~Borrowed() {
    if (env_ == nullptr) return;
    const jthrowable pending = env_->ExceptionOccurred();
    if (pending != nullptr) env_->ExceptionClear();
    move(env_, true);
    if (pending != nullptr) env_->Throw(pending);
  }

  const View& lend(JNIEnv* env, jobject array, const char* name, bool written) {
    if (array == nullptr) refuse(std::string(name) + ": the array must not be null");
    const Machine& machine = Machine::here();
    const auto header = static_cast<jlongArray>(env->GetObjectField(array, machine.array_header));
    jlong of[Header::kCount];
    env->GetLongArrayRegion(header, 0, Header::kCount, of);
    env->DeleteLocalRef(header);
    const bool is_read_only = of[Header::kReadOnly] != 0;
    void* memory = reinterpret_cast<void*>(of[Header::kAddress]);  // from GetDirectBufferAddress
    if (of[Header::kHeap] != 0) {
      heap_ = env->GetObjectField(array, machine.array_heap);
      heap_offset_ = of[Header::kHeapOffset];
      memory = copy_in(env, of[Header::kBytes], name);
      if (written && !is_read_only) env_ = env;
    }
    static_assert(sizeof(jlong) == sizeof(int64_t));
    const auto* const dims = reinterpret_cast<const int64_t*>(of + Header::kDims);
    const auto rank = static_cast<int32_t>(of[Header::kRank]);
    const int64_t* const strides = of[Header::kStrided] != 0 ? dims + (Header::kStrides - Header::kDims) : nullptr;
    const auto dtype = static_cast<st_dtype>(of[Header::kDType]);
    if (is_read_only) {
      view_ =
          View(static_cast<DType>(dtype), static_cast<const void*>(memory), std::vector<int64_t>(dims, dims + rank), of[Header::kBytes]);
      if (strides != nullptr) view_.strided(std::vector<int64_t>(strides, strides + rank));
    } else {
      view_ = View(st_view{dtype, rank, dims, strides, memory, of[Header::kBytes], 0, 0});
    }
    view_.on_device(static_cast<int32_t>(of[Header::kDevice]));
    return view_;
  }
  const View& view() const noexcept { return view_; }

 private:
  void* copy_in(JNIEnv* env, int64_t bytes, const char* name) {
    copy_.reset(std::malloc(static_cast<size_t>(bytes > 0 ? bytes : 1)));
    if (!copy_)
      throw Error(Status::out_of_memory, std::string(name) + ": not enough memory to copy a Java array of " + std::to_string(bytes) +
                                             " bytes; use a direct buffer, which is not copied");
    bytes_ = bytes;
    if (!move(env, false)) throw std::bad_alloc();
    return copy_.get();
  }
  bool move(JNIEnv* env, bool out) const {
    if (bytes_ == 0) return true;
    auto* const array = static_cast<jarray>(heap_);
    auto* const there = static_cast<char*>(env->GetPrimitiveArrayCritical(array, nullptr));
    if (there == nullptr) return false;
    if (out) copy_out(there + heap_offset_);
    if (!out) std::memcpy(copy_.get(), there + heap_offset_, static_cast<size_t>(bytes_));
    env->ReleasePrimitiveArrayCritical(array, there, out ? 0 : JNI_ABORT);
    return true;
  }

  /// With strides, copies only the elements: the memory between them may belong to another view.
  void copy_out(char* to) const {
    const auto* const from = static_cast<const char*>(copy_.get());
    const st_view raw = view_.raw();
    if (raw.strides == nullptr) {
      std::memcpy(to, from, static_cast<size_t>(bytes_));
      return;
    }
    const int64_t item = scaletrain::bytes_of(view_.dtype());
    int64_t index[8] = {};
    for (int64_t n = view_.size(); n > 0; --n) {
      int64_t at = 0;
      for (int32_t i = 0; i < raw.rank; ++i) at += index[i] * raw.strides[i];
      std::memcpy(to + at * item, from + at * item, static_cast<size_t>(item));
      for (int32_t i = raw.rank - 1; i >= 0 && ++index[i] == raw.dims[i]; --i) index[i] = 0;
    }
  }

  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  View view_;
  std::unique_ptr<void, Free> copy_;
  JNIEnv* env_ = nullptr;   // set if the call writes
  jobject heap_ = nullptr;  // a local reference
  int64_t heap_offset_ = 0, bytes_ = 0;
};

/// Whether a call writes to the arrays of a parameter.
constexpr bool is_written(std::string_view call, std::string_view parameter) {
  if (parameter == "view" && call.find("Communicator_") != std::string_view::npos) return call.find("_send") == std::string_view::npos;
  if (parameter == "own") return call.find("_reduce_scatter") != std::string_view::npos;
  if (parameter == "whole") return call.find("_all_gather") != std::string_view::npos;
  if (parameter == "gradients" && call.find("ShardedOptimizer_") != std::string_view::npos) return true;  // stage 1 writes them
  if (parameter == "gradients") return call.find("Optimizer_step") == std::string_view::npos;
  return parameter == "outputs" || parameter == "to" || parameter == "c" || parameter == "pre_activation" || parameter == "column_sums";
}

/// The arrays of one parameter of a call.
class Arrays {
 public:
  /// A null entry becomes an empty view.
  const std::vector<View>& list(JNIEnv* env, jobjectArray arrays, const char* name, bool written) {
    if (arrays == nullptr) refuse(std::string(name) + ": the arrays must not be null");
    const jsize count = env->GetArrayLength(arrays);
    held_.reserve(static_cast<size_t>(count));
    list_.reserve(static_cast<size_t>(count));
    for (jsize i = 0; i < count; ++i) {
      const jobject array = env->GetObjectArrayElement(arrays, i);
      list_.push_back(array == nullptr ? View() : held_.emplace_back().lend(env, array, name, written));
      env->DeleteLocalRef(array);
    }
    return list_;
  }
  /// `pairs` alternates names and arrays, as org.scaletrain.Batch does; null means no arrays.
  const Views& named(JNIEnv* env, jobjectArray pairs, bool written) {
    if (pairs == nullptr) return named_;
    const jsize count = env->GetArrayLength(pairs) / 2;
    std::vector<NamedView> all;
    all.reserve(static_cast<size_t>(count));
    held_.reserve(static_cast<size_t>(count));
    for (jsize i = 0; i < count; ++i) {
      const auto text = static_cast<jstring>(env->GetObjectArrayElement(pairs, 2 * i));
      const jobject array = env->GetObjectArrayElement(pairs, 2 * i + 1);
      std::string name = text_of(env, text, "name");
      const View& view = held_.emplace_back().lend(env, array, name.c_str(), written);
      all.push_back({std::move(name), view});
      env->DeleteLocalRef(text);
      env->DeleteLocalRef(array);
    }
    named_ = Views(std::move(all));
    return named_;
  }

 private:
  std::vector<Borrowed> held_;
  std::vector<View> list_;
  Views named_;
};

/// A direct ByteBuffer over memory; a local reference.
inline jobject new_buffer(JNIEnv* env, const View& view) {
  static char nothing = 0;
  const int64_t bytes = view.size() * bytes_of(view.dtype());
  if (bytes > INT32_MAX)
    throw Error(Status::unsupported, "an array of " + std::to_string(bytes) + " bytes is larger than 2 GiB, the limit of a ByteBuffer");
  return made(env, env->NewDirectByteBuffer(view.data() != nullptr ? view.data() : &nothing, bytes));
}
inline jlongArray new_longs(JNIEnv* env, const int64_t* values, size_t count) {
  const jlongArray made_array = made(env, env->NewLongArray(static_cast<jsize>(count)));
  static_assert(sizeof(jlong) == sizeof(int64_t));
  env->SetLongArrayRegion(made_array, 0, static_cast<jsize>(count), reinterpret_cast<const jlong*>(values));
  return made_array;
}
inline jlongArray new_longs(JNIEnv* env, const std::vector<int64_t>& values) { return new_longs(env, values.data(), values.size()); }

inline std::vector<int64_t> longs_of(JNIEnv* env, jlongArray array, const char* name) {
  if (array == nullptr) refuse(std::string(name) + ": the array must not be null");
  std::vector<int64_t> values(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetLongArrayRegion(array, 0, static_cast<jsize>(values.size()), reinterpret_cast<jlong*>(values.data()));
  return values;
}
inline std::vector<int32_t> ints_of(JNIEnv* env, jintArray array, const char* name) {
  if (array == nullptr) refuse(std::string(name) + ": the array must not be null");
  std::vector<int32_t> values(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetIntArrayRegion(array, 0, static_cast<jsize>(values.size()), reinterpret_cast<jint*>(values.data()));
  return values;
}
inline std::vector<std::string> texts_of(JNIEnv* env, jobjectArray array, const char* name) {
  if (array == nullptr) refuse(std::string(name) + ": the array must not be null");
  std::vector<std::string> texts;
  for (jsize i = 0; i < env->GetArrayLength(array); ++i) {
    const auto text = static_cast<jstring>(env->GetObjectArrayElement(array, i));
    texts.push_back(text_of(env, text, name));
    env->DeleteLocalRef(text);
  }
  return texts;
}

}  // namespace scaletrain::java
