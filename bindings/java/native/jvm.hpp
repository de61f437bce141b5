// The JVM in C++: this thread's access to it, classes and methods that are looked up once, and its shutdown.
#pragma once

#include <jni.h>

#include <atomic>
#include <chrono>
#include <scaletrain/error.hpp>
#include <string>
#include <thread>

namespace scaletrain::java {

constexpr jint kVersion = JNI_VERSION_10;

/// Looked up once, when the library is loaded: only then does FindClass use the class loader that loaded the library.
struct Machine {
  JavaVM* vm = nullptr;

  jclass array = nullptr;  // org.scaletrain.Array
  jfieldID array_header = nullptr, array_heap = nullptr;
  jclass object = nullptr, text = nullptr;  // java.lang.Object, String
  jclass step_report = nullptr, optimizer_report = nullptr, memory_use = nullptr, save_progress = nullptr;
  jmethodID make_step_report = nullptr, make_optimizer_report = nullptr, make_memory_use = nullptr, make_save_progress = nullptr;

  jclass callbacks = nullptr;  // org.scaletrain.Callbacks: static methods
  jmethodID make_evaluation = nullptr, make_memory_stats = nullptr, make_parameter_info = nullptr, make_read_report = nullptr,
            make_load_report = nullptr, make_type = nullptr;
  jmethodID error = nullptr, log = nullptr, parallel = nullptr, step = nullptr, token = nullptr, rate = nullptr, fill = nullptr,
            write = nullptr, read = nullptr, send = nullptr, receive = nullptr, shape = nullptr, forward = nullptr, backward = nullptr;

  static Machine& here() {
    static Machine machine;
    return machine;
  }
  /// Called by JNI_OnLoad. If it returns false, a Java exception is pending.
  bool load(JavaVM* with);
};

/// State of the program's end. Once a shutdown hook has set `begun`, the library's own threads make no new calls to Java. `inside` counts
/// those that are still in one. The JVM itself stops Java's threads.
struct Ending {
  std::atomic<bool> begun{false};
  std::atomic<int> inside{0};
  static Ending& here() {
    static Ending ending;
    return ending;
  }
};
inline void end() {
  Ending::here().begun.store(true);
  for (int i = 0; i < 2000 && Ending::here().inside.load() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

namespace detail {

/// Attaches a library thread to the JVM until the thread ends.
struct Attached {
  JNIEnv* env = nullptr;
  ~Attached() {
    if (env == nullptr || Ending::here().begun.load()) return;  // in a JVM that is shutting down, detaching would block forever
    Machine::here().vm->DetachCurrentThread();
  }
};
inline Attached& attached() {
  thread_local Attached here;
  return here;
}

}  // namespace detail

/// This thread's access to the JVM, with a frame for local references. On a library thread the constructor throws Error if the program is
/// ending.
class Frame {
 public:
  Frame() {
    JavaVM* const vm = Machine::here().vm;
    void* found = nullptr;
    detail::Attached& attached = detail::attached();
    is_ours_ = attached.env != nullptr || vm->GetEnv(&found, kVersion) != JNI_OK;
    if (is_ours_) {
      Ending::here().inside.fetch_add(1);
      if (Ending::here().begun.load()) stop("the JVM is shutting down; Java callbacks are no longer called");
      if (attached.env == nullptr) {
        JavaVMAttachArgs as{kVersion, const_cast<char*>("scaletrain"), nullptr};
        if (vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&attached.env), &as) != JNI_OK) {
          attached.env = nullptr;
          stop("a library thread could not be attached to the JVM, so it cannot call a Java callback");
        }
      }
      env_ = attached.env;
    } else {
      env_ = static_cast<JNIEnv*>(found);
    }
    if (env_->PushLocalFrame(32) != JNI_OK) {
      env_->ExceptionClear();
      stop("the JVM has no memory for a callback");
    }
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    env_->PopLocalFrame(nullptr);
    if (is_ours_) Ending::here().inside.fetch_sub(1);
  }
  JNIEnv* env() const noexcept { return env_; }
  JNIEnv* operator->() const noexcept { return env_; }

 private:
  [[noreturn]] void stop(const char* why) const {
    if (is_ours_) Ending::here().inside.fetch_sub(1);
    throw Error(Status::cancelled, why);
  }

  JNIEnv* env_ = nullptr;
  bool is_ours_ = false;
};

inline bool Machine::load(JavaVM* with) {
  void* found = nullptr;
  if (with->GetEnv(&found, kVersion) != JNI_OK) return false;
  auto* const env = static_cast<JNIEnv*>(found);
  vm = with;
  bool whole = true;
  const auto type_of = [&](const char* name) -> jclass {
    if (!whole) return nullptr;
    const jclass local = env->FindClass(name);
    const auto kept = local == nullptr ? nullptr : static_cast<jclass>(env->NewGlobalRef(local));
    whole = kept != nullptr;
    return kept;
  };
  const auto method = [&](jclass of, const char* name, const char* signature) -> jmethodID {
    const jmethodID id = whole ? env->GetStaticMethodID(of, name, signature) : nullptr;
    whole = whole && id != nullptr;
    return id;
  };
  const auto constructor = [&](jclass of, const char* signature) -> jmethodID {
    const jmethodID id = whole ? env->GetMethodID(of, "<init>", signature) : nullptr;
    whole = whole && id != nullptr;
    return id;
  };
  const auto field = [&](jclass of, const char* name, const char* signature) -> jfieldID {
    const jfieldID id = whole ? env->GetFieldID(of, name, signature) : nullptr;
    whole = whole && id != nullptr;
    return id;
  };
  object = type_of("java/lang/Object");
  text = type_of("java/lang/String");
  array = type_of("org/scaletrain/Array");
  array_header = field(array, "header", "[J");
  array_heap = field(array, "heap", "Ljava/lang/Object;");
  step_report = type_of("org/scaletrain/StepReport");
  make_step_report = constructor(step_report, "(ZJDDDDJDDJDLjava/lang/String;J)V");
  optimizer_report = type_of("org/scaletrain/OptimizerReport");
  make_optimizer_report = constructor(optimizer_report, "(ZJDD)V");
  memory_use = type_of("org/scaletrain/MemoryUse");
  make_memory_use = constructor(memory_use, "(Ljava/lang/String;JJ)V");
  save_progress = type_of("org/scaletrain/SaveProgress");
  make_save_progress = constructor(save_progress, "(JJJJJJDD)V");
  callbacks = type_of("org/scaletrain/Callbacks");
  make_evaluation = method(callbacks, "evaluation", "(DD[Ljava/lang/String;[D)Lorg/scaletrain/Evaluation;");
  make_memory_stats = method(callbacks, "memoryStats", "(JJJJJ[Ljava/lang/Object;)Lorg/scaletrain/MemoryStats;");
  make_parameter_info = method(callbacks, "parameterInfo", "(Ljava/lang/String;I[JZ)Lorg/scaletrain/ParameterInfo;");
  make_read_report = method(callbacks, "readReport", "(J[Ljava/lang/String;[Ljava/lang/String;)Lorg/scaletrain/ReadReport;");
  make_load_report = method(callbacks, "loadReport",
                            "(JLjava/lang/String;Ljava/lang/String;J[Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/String;"
                            "[Ljava/lang/String;)Lorg/scaletrain/LoadReport;");
  make_type = method(callbacks, "type", "(I[J)Lorg/scaletrain/ArrayType;");
  error = method(callbacks, "error",
                 "(ILjava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;JJI)"
                 "Ljava/lang/Throwable;");
  log = method(callbacks, "log", "(Ljava/lang/Object;ILjava/lang/String;Ljava/lang/String;)V");
  parallel = method(callbacks, "parallel", "(Ljava/lang/Object;JJ)V");
  step = method(callbacks, "step", "(Ljava/lang/Object;Lorg/scaletrain/StepReport;)Z");
  token = method(callbacks, "token", "(Ljava/lang/Object;I)Z");
  rate = method(callbacks, "rate", "(Ljava/lang/Object;J)D");
  fill = method(callbacks, "fill", "(Ljava/lang/Object;[J[Ljava/lang/Object;)V");
  write = method(callbacks, "write", "(Ljava/lang/Object;[BI)V");
  read = method(callbacks, "read", "(Ljava/lang/Object;[BI)I");
  send = method(callbacks, "send", "(Ljava/lang/Object;I[BI)I");
  receive = method(callbacks, "receive", "(Ljava/lang/Object;I[BI)I");
  shape = method(callbacks, "shape", "(Ljava/lang/Object;[Ljava/lang/Object;)[J");
  forward = method(callbacks, "forward", "(Ljava/lang/Object;[Ljava/lang/Object;[Ljava/lang/Object;)V");
  backward =
      method(callbacks, "backward", "(Ljava/lang/Object;[Ljava/lang/Object;[Ljava/lang/Object;[Ljava/lang/Object;[Ljava/lang/Object;)V");
  return whole;
}

}  // namespace scaletrain::java
