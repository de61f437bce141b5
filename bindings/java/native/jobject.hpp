// Java objects in C++: references that any thread may drop, strings, and exceptions that pass through the library unchanged.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "jvm.hpp"

namespace scaletrain::java {

[[noreturn]] inline void refuse(const std::string& what) { throw Error(Status::invalid_argument, what); }

/// The text of the exception, from its toString().
std::string words_of(JNIEnv* env, jobject thrown);

/// A reference to a Java object, which any thread may drop. While one exists, the shutdown hook, which keeps the class loader and thereby
/// this library, stays registered (internal/Unreachable.java).
using Reference = std::shared_ptr<_jobject>;

/// Number of references.
inline std::atomic<int64_t>& references() noexcept {
  static std::atomic<int64_t> count{0};
  return count;
}

template <void (JNIEnv::*Delete)(jobject)>
void drop(jobject object) noexcept {
  if (object == nullptr) return;
  try {
    const Frame frame;
    (frame.env()->*Delete)(object);
    const Machine& machine = Machine::here();
    // A Java thread is in a call of an object, whose own end is still to come.
    const auto callbacks = frame.is_ours() ? static_cast<jclass>(frame->NewLocalRef(machine.callbacks)) : nullptr;
    if (references().fetch_sub(1) != 1 || callbacks == nullptr || frame->ExceptionCheck() == JNI_TRUE) return;
    frame->CallStaticVoidMethod(callbacks, machine.let_go);
    frame->ExceptionClear();
  } catch (const Error&) {  // the program is ending; the JVM frees the object
  }
}

/// Takes ownership of a global reference; it may be null.
template <void (JNIEnv::*Delete)(jobject)>
Reference owned(jobject object) {
  if (object != nullptr) references().fetch_add(1);
  return Reference(object, drop<Delete>);
}

/// Carries a Java exception through the library.
class Raised : public std::exception {
 public:
  /// Takes the thread's pending exception; there must be one.
  explicit Raised(JNIEnv* env) {
    const jthrowable thrown = env->ExceptionOccurred();
    env->ExceptionClear();
    thrown_ = owned<&JNIEnv::DeleteGlobalRef>(env->NewGlobalRef(thrown));
    words_ = words_of(env, thrown);
    env->DeleteLocalRef(thrown);
  }
  const char* what() const noexcept override { return words_.c_str(); }
  void restore(JNIEnv* env) const { env->Throw(static_cast<jthrowable>(thrown_.get())); }

 private:
  Reference thrown_;
  std::string words_;
};

inline void check(JNIEnv* env) {
  if (env->ExceptionCheck() == JNI_TRUE) throw Raised(env);
}
/// Returns a new reference from Java, or throws the error of creating it.
template <class Reference>
Reference made(JNIEnv* env, Reference reference) {
  check(env);
  if (reference == nullptr) throw std::bad_alloc();
  return reference;
}

/// A strong reference, held until the last copy is destroyed.
class Kept {
 public:
  Kept() = default;
  Kept(JNIEnv* env, jobject object) : object_(owned<&JNIEnv::DeleteGlobalRef>(made(env, env->NewGlobalRef(object)))) {}
  jobject get() const noexcept { return object_.get(); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  Reference object_;
};

/// A weak reference to an object that other Java objects keep alive. So an object that refers back to these can be collected with them.
class Seen {
 public:
  Seen() = default;
  Seen(JNIEnv* env, jobject object) : object_(owned<&JNIEnv::DeleteWeakGlobalRef>(made(env, env->NewWeakGlobalRef(object)))) {}
  /// A local reference, or null if the object has been collected.
  jobject local(JNIEnv* env) const { return env->NewLocalRef(object_.get()); }

 private:
  Reference object_;
};

/// Converts UTF-16 to UTF-8. An unpaired surrogate becomes U+FFFD.
inline std::string utf8_of(const jchar* units, size_t count) {
  std::string text;
  text.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t point = units[i];
    if (point >= 0xD800 && point < 0xE000) {
      const bool is_pair = point < 0xDC00 && i + 1 < count && units[i + 1] >= 0xDC00 && units[i + 1] < 0xE000;
      point = is_pair ? 0x10000 + ((point - 0xD800) << 10) + (units[i + 1] - 0xDC00U) : 0xFFFD;
      if (is_pair) ++i;
    }
    if (point < 0x80) {
      text += static_cast<char>(point);
      continue;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    text += static_cast<char>((0xFF00U >> (more + 1) & 0xFF) | point >> (6 * more));  // 110, 1110 or 11110, and the highest bits
    for (int k = more - 1; k >= 0; --k) text += static_cast<char>(0x80 | (point >> (6 * k) & 0x3F));
  }
  return text;
}
/// Converts UTF-8 to UTF-16. Invalid bytes become U+FFFD.
inline std::u16string utf16_of(const std::string& text) {
  std::u16string units;
  units.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t point = static_cast<unsigned char>(text[i]);
    int more = point < 0x80 ? 0 : point >= 0xF0 ? 3 : point >= 0xE0 ? 2 : point >= 0xC0 ? 1 : -1;
    if (more > 0) point &= 0x3FU >> more;
    for (; more > 0; --more) {
      const uint32_t next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
      if ((next & 0xC0) != 0x80) break;
      point = point << 6 | (next & 0x3F);
      ++i;
    }
    if (more != 0 || point > 0x10FFFF) point = 0xFFFD;
    if (point >= 0x10000) {
      units += static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10));
      point = 0xDC00 + ((point - 0x10000) & 0x3FF);
    }
    units += static_cast<char16_t>(point);
  }
  return units;
}

/// Throws Error for null, and for a string that contains a character 0, which would end a C string.
inline std::string text_of(JNIEnv* env, jstring text, const char* name) {
  if (text == nullptr) refuse(std::string(name) + ": the string must not be null");
  const jsize count = env->GetStringLength(text);
  jchar few[64];
  std::vector<jchar> many(count <= 64 ? 0 : static_cast<size_t>(count));
  jchar* const units = many.empty() ? few : many.data();
  env->GetStringRegion(text, 0, count, units);
  if (std::find(units, units + count, u'\0') != units + count) refuse(std::string(name) + ": the string must not contain a character 0");
  return utf8_of(units, static_cast<size_t>(count));
}
inline jstring new_text(JNIEnv* env, const std::string& text) {
  const std::u16string units = utf16_of(text);
  return made(env, env->NewString(reinterpret_cast<const jchar*>(units.data()), static_cast<jsize>(units.size())));
}

inline std::string words_of(JNIEnv* env, jobject thrown) {
  const jmethodID to_string = env->GetMethodID(Machine::here().object, "toString", "()Ljava/lang/String;");
  const jobject text = to_string == nullptr ? nullptr : env->CallObjectMethod(thrown, to_string);
  if (env->ExceptionCheck() == JNI_TRUE || text == nullptr) {
    env->ExceptionClear();
    return "an exception without a text";
  }
  std::vector<jchar> units(static_cast<size_t>(env->GetStringLength(static_cast<jstring>(text))));
  env->GetStringRegion(static_cast<jstring>(text), 0, static_cast<jsize>(units.size()), units.data());
  env->DeleteLocalRef(text);
  return utf8_of(units.data(), units.size());
}

/// Throws the library's error as a Java exception on this thread. Callbacks.error chooses the class.
inline void set_error(JNIEnv* env, const Error& error) {
  const ErrorInfo& info = error.info();
  const Machine& machine = Machine::here();
  if (env->PushLocalFrame(16) != JNI_OK) return;  // OutOfMemoryError is now this thread's exception
  try {
    const jobject exception = made(
        env, env->CallStaticObjectMethod(machine.callbacks, machine.error, static_cast<jint>(error.status()), new_text(env, error.what()),
                                         new_text(env, info.op), new_text(env, info.tensor), new_text(env, info.file),
                                         new_text(env, info.host), new_text(env, info.collective), static_cast<jlong>(info.offset),
                                         static_cast<jlong>(info.step), static_cast<jint>(info.rank)));
    env->Throw(static_cast<jthrowable>(exception));
  } catch (const Raised& raised) {
    raised.restore(env);
  } catch (const std::bad_alloc&) {  // Java has already thrown OutOfMemoryError
  }
  env->PopLocalFrame(nullptr);
}

/// To be called in a catch (...): rethrows the C++ exception as a Java exception on this thread.
inline void set_current_error(JNIEnv* env) noexcept {
  try {
    throw;
  } catch (const Raised& raised) {
    raised.restore(env);
  } catch (const Error& error) {
    set_error(env, error);
  } catch (const std::bad_alloc&) {
    if (env->ExceptionCheck() == JNI_FALSE) set_error(env, Error(Status::out_of_memory, "out of memory"));
  } catch (const std::exception& error) {
    set_error(env, Error(Status::internal, error.what()));
  }
}

}  // namespace scaletrain::java
