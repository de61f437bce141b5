// The JVM in C++: this thread's access to it, classes and methods that are looked up once, and its shutdown.
#pragma once

#include <jni.h>

#include <atomic>
#include <chrono>
#include <scaletrain/error.hpp>
#include <string>
#include <thread>
#include <vector>

namespace scaletrain::java {

constexpr jint kVersion = JNI_VERSION_10;

/// Looked up once, when the library is loaded: only then does FindClass use the class loader that loaded the library. The classes are weak
/// references, since strong ones would keep that class loader for ever. They stay valid while native code runs on a Java thread or refers
/// to a Java object (Reference in jobject.hpp).
struct Machine {
  JavaVM* vm = nullptr;
  std::vector<jclass> classes;  // all that follow

  jclass array = nullptr;  // org.scaletrain.Array
  jfieldID array_header = nullptr, array_heap = nullptr;
  jclass object = nullptr, text = nullptr;  // java.lang.Object, String
  jclass step_report = nullptr, optimizer_report = nullptr, memory_use = nullptr, save_progress = nullptr;
  jmethodID make_step_report = nullptr, make_optimizer_report = nullptr, make_memory_use = nullptr, make_save_progress = nullptr;

  jclass callbacks = nullptr;  // org.scaletrain.Callbacks: static methods
  jmethodID make_evaluation = nullptr, make_memory_stats = nullptr, make_parameter_info = nullptr, make_read_report = nullptr,
            make_load_report = nullptr, make_type = nullptr;
  jmethodID error = nullptr, log = nullptr, parallel = nullptr, step = nullptr, token = nullptr, rate = nullptr, fill = nullptr,
            write = nullptr, read = nullptr, send = nullptr, receive = nullptr, shape = nullptr, forward = nullptr, backward = nullptr,
            stage = nullptr, let_go = nullptr;

  static Machine& here() {
    static Machine machine;
    return machine;
  }
  /// Called by JNI_OnLoad. If it returns false, a Java exception is pending.
  bool load(JavaVM* with);
  /// Called by JNI_OnUnload.
  void unload();
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

/// Set on library threads that have been attached to the JVM.
inline JNIEnv*& attached() {
  thread_local JNIEnv* env = nullptr;
  return env;
}
/// Detaches this thread when it ends. Only for library threads: a thread_local object with a destructor keeps this library mapped while its
/// thread lives.
inline void detach_at_end() {
  struct Detach {
    Detach() = default;
    Detach(const Detach&) = delete;
    Detach& operator=(const Detach&) = delete;
    ~Detach() {
      if (!Ending::here().begun.load()) Machine::here().vm->DetachCurrentThread();  // in a JVM that is shutting down it would block forever
    }
  };
  thread_local const Detach detach;
}

}  // namespace detail

/// This thread's access to the JVM, with a frame for local references. On a library thread the constructor throws Error if the program is
/// ending.
class Frame {
 public:
  Frame() {
    JavaVM* const vm = Machine::here().vm;
    void* found = nullptr;
    JNIEnv*& attached = detail::attached();
    is_ours_ = attached != nullptr || vm->GetEnv(&found, kVersion) != JNI_OK;
    if (is_ours_) {
      Ending::here().inside.fetch_add(1);
      if (Ending::here().begun.load()) stop("the JVM is shutting down; Java callbacks are no longer called");
      if (attached == nullptr) {
        JavaVMAttachArgs as{kVersion, const_cast<char*>("scaletrain"), nullptr};
        if (vm->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&attached), &as) != JNI_OK) {
          attached = nullptr;
          stop("a library thread could not be attached to the JVM, so it cannot call a Java callback");
        }
        detail::detach_at_end();
      }
      env_ = attached;
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
  /// Whether this is a library thread.
  bool is_ours() const noexcept { return is_ours_; }

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
    const auto weak = local == nullptr ? nullptr : static_cast<jclass>(env->NewWeakGlobalRef(local));
    whole = weak != nullptr;
    if (whole) classes.push_back(weak);
    return weak;
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
  stage = method(callbacks, "stage", "(Ljava/lang/Object;IIII[Ljava/lang/Object;)V");
  let_go = method(callbacks, "letGo", "()V");
  return whole;
}

inline void Machine::unload() {
  void* env = nullptr;
  if (vm->GetEnv(&env, kVersion) != JNI_OK) return;
  for (const jclass weak : classes) static_cast<JNIEnv*>(env)->DeleteWeakGlobalRef(weak);
}

}  // namespace scaletrain::java
