// Arrays of Java's as views: direct buffers where they lie, Java's own arrays by a copy that is written back.
#pragma once

#include <cstdlib>
#include <cstring>
#include <scaletrain/view.hpp>
#include <string_view>
#include <vector>

#include "jobject.hpp"

namespace scaletrain::java {

/// org.scaletrain.Array's header, in its order.
struct Header {
  enum : int { kAddress, kBytes, kDType, kReadOnly, kRank, kStrided, kHeapOffset, kDims, kStrides = kDims + 8, kCount = kStrides + 8 };
};

/// An Array for the time of a call. Java's own arrays are copied in, and back out where the call may have written.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Borrowed(Borrowed&& other) noexcept
      : view_(other.view_),
        copy_(std::move(other.copy_)),
        heap_(other.heap_),
        heap_offset_(other.heap_offset_),
        bytes_(other.bytes_),
        is_read_only_(other.is_read_only_) {
    other.heap_ = nullptr;
  }
  Borrowed(JNIEnv* env, jobject array, const char* name) {
    const Machine& machine = Machine::here();
    if (array == nullptr) refuse(std::string(name) + ": an array is needed, not null");
    if (env->IsInstanceOf(array, machine.array) == JNI_FALSE) refuse(std::string(name) + ": this is no org.scaletrain.Array");
    const auto header = static_cast<jlongArray>(env->GetObjectField(array, machine.array_header));
    jlong of[Header::kCount];
    env->GetLongArrayRegion(header, 0, Header::kCount, of);
    env->DeleteLocalRef(header);
    bytes_ = of[Header::kBytes];
    auto* memory = reinterpret_cast<void*>(of[Header::kAddress]);  // NOLINT: what GetDirectBufferAddress gave
    const jobject heap = env->GetObjectField(array, machine.array_heap);
    if (heap != nullptr) {
      heap_offset_ = of[Header::kHeapOffset];
      copy_.reset(std::malloc(static_cast<size_t>(bytes_ > 0 ? bytes_ : 1)));
      if (!copy_)
        throw Error(Status::out_of_memory, std::string(name) + ": no memory for a copy of a Java array of " + std::to_string(bytes_) +
                                               " bytes; direct buffers are not copied");
      memory = copy_.get();
      heap_ = heap;
      move(env, false);
    }
    const std::vector<int64_t> dims(of + Header::kDims, of + Header::kDims + of[Header::kRank]);
    const auto dtype = static_cast<DType>(of[Header::kDType]);
    is_read_only_ = of[Header::kReadOnly] != 0;
    view_ = is_read_only_ ? View(dtype, static_cast<const void*>(memory), dims, bytes_) : View(dtype, memory, dims, bytes_);
    if (of[Header::kStrided] != 0) view_.strided(std::vector<int64_t>(of + Header::kStrides, of + Header::kStrides + of[Header::kRank]));
  }

  const View& view() const noexcept { return view_; }
  /// What the call has written, to where it belongs.
  void give_back(JNIEnv* env) {
    if (heap_ != nullptr && !is_read_only_) move(env, true);
  }

 private:
  void move(JNIEnv* env, bool out) const {
    if (bytes_ == 0) return;
    auto* const array = static_cast<jarray>(heap_);
    auto* const there = static_cast<char*>(env->GetPrimitiveArrayCritical(array, nullptr));
    if (there == nullptr) throw std::bad_alloc();
    if (out) std::memcpy(there + heap_offset_, copy_.get(), static_cast<size_t>(bytes_));
    if (!out) std::memcpy(copy_.get(), there + heap_offset_, static_cast<size_t>(bytes_));
    env->ReleasePrimitiveArrayCritical(array, there, out ? 0 : JNI_ABORT);
  }

  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  View view_;
  std::unique_ptr<void, Free> copy_;
  jobject heap_ = nullptr;  // a local reference
  int64_t heap_offset_ = 0, bytes_ = 0;
  bool is_read_only_ = false;
};

/// Whether a call writes to the arrays of a parameter.
constexpr bool is_written(std::string_view call, std::string_view parameter) {
  if (parameter == "gradients") return call.find("Optimizer_step") == std::string_view::npos;
  return parameter == "outputs" || parameter == "to" || parameter == "c" || parameter == "pre_activation" || parameter == "column_sums";
}

/// The arrays of one parameter of a call, until it returns.
class Arrays {
 public:
  Arrays() = default;
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  /// Also when the call has failed, as direct memory would be seen then.
  ~Arrays() {
    if (env_ == nullptr) return;
    const jthrowable pending = env_->ExceptionOccurred();
    if (pending != nullptr) env_->ExceptionClear();
    try {
      for (Borrowed& array : held_) array.give_back(env_);
    } catch (const std::bad_alloc&) {  // Java has said so
    }
    if (pending != nullptr) env_->Throw(pending);
  }

  const View& one(JNIEnv* env, jobject array, const char* name, bool written) {
    held_.reserve(1);
    return add(env, array, name, written);
  }
  /// null is a view of nothing.
  const std::vector<View>& list(JNIEnv* env, jobjectArray arrays, const char* name, bool written) {
    const jsize count = count_of(env, arrays, name);
    held_.reserve(static_cast<size_t>(count));
    list_.reserve(static_cast<size_t>(count));
    for (jsize i = 0; i < count; ++i) {
      const jobject array = env->GetObjectArrayElement(arrays, i);
      if (array == nullptr) {
        list_.emplace_back();
      } else {
        list_.push_back(add(env, array, name, written));
        env->DeleteLocalRef(array);
      }
    }
    return list_;
  }
  /// Names and arrays in turn, as org.scaletrain.Batch has them; null: none.
  const Views& named(JNIEnv* env, jobjectArray pairs, bool written) {
    if (pairs == nullptr) return named_;
    const jsize count = env->GetArrayLength(pairs);
    std::vector<NamedView> all;
    all.reserve(static_cast<size_t>(count / 2));
    held_.reserve(static_cast<size_t>(count / 2));
    for (jsize i = 0; i + 1 < count; i += 2) {
      const auto text = static_cast<jstring>(env->GetObjectArrayElement(pairs, i));
      std::string name = text_of(env, text, "name");
      env->DeleteLocalRef(text);
      const jobject array = env->GetObjectArrayElement(pairs, i + 1);
      const View& view = add(env, array, name.c_str(), written);
      all.push_back({std::move(name), view});
      env->DeleteLocalRef(array);
    }
    named_ = Views(std::move(all));
    return named_;
  }

 private:
  static jsize count_of(JNIEnv* env, jobjectArray arrays, const char* name) {
    if (arrays == nullptr) refuse(std::string(name) + ": arrays are needed, not null");
    return env->GetArrayLength(arrays);
  }
  const View& add(JNIEnv* env, jobject array, const char* name, bool written) {
    held_.emplace_back(env, array, name);
    if (written) env_ = env;
    return held_.back().view();
  }

  JNIEnv* env_ = nullptr;
  std::vector<Borrowed> held_;
  std::vector<View> list_;
  Views named_;
};

/// A direct ByteBuffer over memory; a local reference.
inline jobject new_buffer(JNIEnv* env, const View& view) {
  static char nothing = 0;
  const int64_t bytes = view.size() * bytes_of(view.dtype());
  if (bytes > INT32_MAX)
    throw Error(Status::unsupported, "an array of " + std::to_string(bytes) + " bytes is larger than a ByteBuffer can be, 2 GiB");
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
  if (array == nullptr) refuse(std::string(name) + ": numbers are needed, not null");
  std::vector<int64_t> values(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetLongArrayRegion(array, 0, static_cast<jsize>(values.size()), reinterpret_cast<jlong*>(values.data()));
  return values;
}
inline std::vector<int32_t> ints_of(JNIEnv* env, jintArray array, const char* name) {
  if (array == nullptr) refuse(std::string(name) + ": numbers are needed, not null");
  std::vector<int32_t> values(static_cast<size_t>(env->GetArrayLength(array)));
  env->GetIntArrayRegion(array, 0, static_cast<jsize>(values.size()), reinterpret_cast<jint*>(values.data()));
  return values;
}
inline std::vector<std::string> texts_of(JNIEnv* env, jobjectArray array, const char* name) {
  if (array == nullptr) refuse(std::string(name) + ": texts are needed, not null");
  std::vector<std::string> texts;
  for (jsize i = 0; i < env->GetArrayLength(array); ++i) {
    const auto text = static_cast<jstring>(env->GetObjectArrayElement(array, i));
    texts.push_back(text_of(env, text, name));
    env->DeleteLocalRef(text);
  }
  return texts;
}

}  // namespace scaletrain::java
