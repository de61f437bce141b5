// Wraps Java functions as library callbacks. They run through org.scaletrain.Callbacks, on any thread. A Java exception passes through the
// library and is rethrown to the caller unchanged.
#pragma once

#include <algorithm>
#include <cstring>
#include <scaletrain/communicator.hpp>
#include <scaletrain/data.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/pipeline.hpp>
#include <scaletrain/predictor.hpp>
#include <scaletrain/trainer.hpp>

#include "jreport.hpp"

namespace scaletrain::java {

// A function that is used during one call is held by a strong reference (Kept). A function that the library keeps for longer is held by a
// weak one (Seen): the Java object that needs it keeps it alive, so a function that refers back to this object can be collected with it.

inline StepFunction step_function(JNIEnv* env, jobject function) {
  if (function == nullptr) return StepFunction();
  return [kept = Kept(env, function)](const StepReport& report) {
    const Frame frame;
    const Machine& machine = Machine::here();
    const jboolean more = frame->CallStaticBooleanMethod(machine.callbacks, machine.step, kept.get(), to_java(frame.env(), report));
    check(frame.env());
    return more == JNI_TRUE;
  };
}

inline TokenFunction token_function(JNIEnv* env, jobject function) {
  if (function == nullptr) return TokenFunction();
  return [kept = Kept(env, function)](int32_t token) {
    const Frame frame;
    const Machine& machine = Machine::here();
    const jboolean more = frame->CallStaticBooleanMethod(machine.callbacks, machine.token, kept.get(), static_cast<jint>(token));
    check(frame.env());
    return more == JNI_TRUE;
  };
}

inline WriteFunction write_function(JNIEnv* env, jobject stream) {
  return [kept = Kept(env, stream)](const void* bytes, int64_t count) {
    const Frame frame;
    const Machine& machine = Machine::here();
    constexpr int64_t kRoom = 1 << 18;
    const jbyteArray chunk = made(frame.env(), frame->NewByteArray(static_cast<jsize>(std::min(count, kRoom))));
    for (int64_t at = 0; at < count; at += kRoom) {
      const auto part = static_cast<jsize>(std::min(count - at, kRoom));
      frame->SetByteArrayRegion(chunk, 0, part, static_cast<const jbyte*>(bytes) + at);
      frame->CallStaticVoidMethod(machine.callbacks, machine.write, kept.get(), chunk, static_cast<jint>(part));
      check(frame.env());
    }
  };
}

inline ReadFunction read_function(JNIEnv* env, jobject stream) {
  return [kept = Kept(env, stream)](void* bytes, int64_t room) {
    const Frame frame;
    const Machine& machine = Machine::here();
    const auto most = static_cast<jsize>(std::min<int64_t>(room, 1 << 18));
    const jbyteArray chunk = made(frame.env(), frame->NewByteArray(most));
    const jint count = frame->CallStaticIntMethod(machine.callbacks, machine.read, kept.get(), chunk, static_cast<jint>(most));
    check(frame.env());
    if (count > 0) frame->GetByteArrayRegion(chunk, 0, count, static_cast<jbyte*>(bytes));
    return static_cast<int64_t>(count);
  };
}

inline RateFunction rate_function(JNIEnv* env, jobject function) {
  if (function == nullptr) return RateFunction();
  return [seen = Seen(env, function)](int64_t step) {
    const Frame frame;
    const Machine& machine = Machine::here();
    const jobject there = seen.local(frame.env());
    if (there == nullptr) throw Error(Status::callback, "set_schedule: the learning-rate function has been garbage-collected");
    const jdouble rate = frame->CallStaticDoubleMethod(machine.callbacks, machine.rate, there, static_cast<jlong>(step));
    check(frame.env());
    return rate;
  };
}

inline LogFunction log_function(JNIEnv* env, jobject function) {
  return [seen = Seen(env, function)](LogLevel level, const char* area, const char* text) {
    if (Ending::here().begun.load()) return;  // the program is ending
    const Frame frame;
    const Machine& machine = Machine::here();
    const jobject there = seen.local(frame.env());
    if (there == nullptr) return;  // the context's last objects are being freed
    frame->CallStaticVoidMethod(machine.callbacks, machine.log, there, static_cast<jint>(level), new_text(frame.env(), area),
                                new_text(frame.env(), text));
    check(frame.env());
  };
}

inline ParallelFunction parallel_function(JNIEnv* env, jobject function) {
  return [seen = Seen(env, function)](int64_t n, const std::function<void(int64_t)>& task) {
    const auto serially = [&] {
      for (int64_t i = 0; i < n; ++i) task(i);
    };
    if (Ending::here().begun.load()) return serially();
    const Frame frame;
    const Machine& machine = Machine::here();
    const jobject there = seen.local(frame.env());
    if (there == nullptr) return serially();
    frame->CallStaticVoidMethod(machine.callbacks, machine.parallel, there, static_cast<jlong>(n),
                                static_cast<jlong>(reinterpret_cast<intptr_t>(&task)));
    check(frame.env());
  };
}

/// Keeps a borrowed Java object alive until the library releases it.
inline ReleaseFunction release_function(JNIEnv* env, jobject object) {
  return [held = std::make_shared<Kept>(env, object)] { *held = Kept(); };
}

inline FillFunction fill_function(JNIEnv* env, jobject function) {
  if (function == nullptr) refuse("fill: the function must not be null");
  return [seen = Seen(env, function)](const int64_t* row_ids, int64_t count, const std::vector<View>& views) {
    const Frame frame;
    const Machine& machine = Machine::here();
    const jobject there = seen.local(frame.env());
    if (there == nullptr) throw Error(Status::cancelled, "fill: the data has been garbage-collected, so these rows are not needed");
    frame->CallStaticVoidMethod(machine.callbacks, machine.fill, there, new_longs(frame.env(), row_ids, static_cast<size_t>(count)),
                                shown(frame.env(), views));
    check(frame.env());
  };
}

/// A transport written in Java, kept until the group is over. The text of its exception becomes the reason for the group's end.
class RankTransport {
 public:
  RankTransport(JNIEnv* env, jobject transport) : kept_(env, transport) {}

  int64_t write(int32_t to, const void* data, int64_t bytes) const {
    const Frame frame;
    const auto part = static_cast<jsize>(std::min(bytes, kMost));
    const jbyteArray chunk = made(frame.env(), frame->NewByteArray(part));
    frame->SetByteArrayRegion(chunk, 0, part, static_cast<const jbyte*>(data));
    return moved(frame, Machine::here().send, to, chunk, part);
  }
  int64_t read(int32_t from, void* data, int64_t bytes) const {
    const Frame frame;
    const auto part = static_cast<jsize>(std::min(bytes, kMost));
    const jbyteArray chunk = made(frame.env(), frame->NewByteArray(part));
    const jint given = moved(frame, Machine::here().receive, from, chunk, part);
    if (given > 0 && given <= part) frame->GetByteArrayRegion(chunk, 0, given, static_cast<jbyte*>(data));
    return given;  // the library checks its bounds
  }

 private:
  static constexpr int64_t kMost = 1 << 16;
  jint moved(const Frame& frame, jmethodID method, int32_t other, jbyteArray chunk, jsize part) const {
    const jint count = frame->CallStaticIntMethod(Machine::here().callbacks, method, kept_.get(), static_cast<jint>(other), chunk,
                                                  static_cast<jint>(part));
    try {
      check(frame.env());
    } catch (const Raised& raised) {
      throw Error(Status::callback, raised.what());
    }
    return count;
  }
  Kept kept_;
};

inline Transport transport_of(JNIEnv* env, jobject object) {
  if (object == nullptr) refuse("transport: must not be null");
  const RankTransport own(env, object);
  return {[own](int32_t to, const void* data, int64_t bytes) { return own.write(to, data, bytes); },
          [own](int32_t from, void* data, int64_t bytes) { return own.read(from, data, bytes); }};
}

/// Types as Callbacks.numbers writes them: dtype, rank and dims of each.
inline std::vector<OpType> types_of(JNIEnv* env, jlongArray list, const char* name) {
  const std::vector<int64_t> numbers = longs_of(env, list, name);
  std::vector<OpType> types;
  for (size_t at = 0; at + 1 < numbers.size();) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(at + 2);
    types.push_back({static_cast<DType>(numbers[at]), std::vector<int64_t>(begin, begin + numbers[at + 1])});
    at += 2 + static_cast<size_t>(numbers[at + 1]);
  }
  return types;
}

/// A stage written in Java.
inline Stage stage_of(JNIEnv* env, jobject stage) {
  const auto function = [seen = Seen(env, stage)](jint phase) {
    return [seen, phase](const StageWork& work) {
      const Frame frame;
      const Machine& machine = Machine::here();
      const jobject there = seen.local(frame.env());
      if (there == nullptr) throw Error(Status::callback, "a stage of a pipeline has been garbage-collected");
      frame->CallStaticVoidMethod(
          machine.callbacks, machine.stage, there, phase, static_cast<jint>(work.part), static_cast<jint>(work.chunk),
          static_cast<jint>(work.micro_batch),
          shown(frame.env(), std::vector<View>{work.input, work.output, work.output_gradient, work.input_gradient}));
      check(frame.env());
    };
  };
  return {function(0), function(1), function(2)};
}

/// An op written in Java.
class Op {
 public:
  Op(JNIEnv* env, jobject op) : seen_(env, op) {}

  std::vector<OpType> shape(const std::vector<OpType>& inputs) const {
    const Frame frame;
    const Machine& machine = Machine::here();
    const jobjectArray types = made(frame.env(), frame->NewObjectArray(static_cast<jsize>(inputs.size()), machine.object, nullptr));
    for (size_t i = 0; i < inputs.size(); ++i)
      frame->SetObjectArrayElement(types, static_cast<jsize>(i), new_type(frame.env(), inputs[i].dtype, inputs[i].dims));
    const jobject answer = frame->CallStaticObjectMethod(machine.callbacks, machine.shape, object(frame), types);
    check(frame.env());
    return types_of(frame.env(), static_cast<jlongArray>(answer), "shape");
  }
  void forward(const std::vector<View>& inputs, const std::vector<View>& outputs) const {
    const Frame frame;
    const Machine& machine = Machine::here();
    frame->CallStaticVoidMethod(machine.callbacks, machine.forward, object(frame), shown(frame.env(), inputs), shown(frame.env(), outputs));
    check(frame.env());
  }
  void backward(const std::vector<View>& inputs, const std::vector<View>& outputs, const std::vector<View>& d_outputs,
                const std::vector<View>& d_inputs) const {
    const Frame frame;
    const Machine& machine = Machine::here();
    frame->CallStaticVoidMethod(machine.callbacks, machine.backward, object(frame), shown(frame.env(), inputs), shown(frame.env(), outputs),
                                shown(frame.env(), d_outputs), shown(frame.env(), d_inputs));
    check(frame.env());
  }

 private:
  jobject object(const Frame& frame) const {
    const jobject there = seen_.local(frame.env());
    if (there == nullptr) throw Error(Status::callback, "a custom op has been garbage-collected");
    return there;
  }
  Seen seen_;
};

inline HostOp host_op(JNIEnv* env, jobject object) {
  const Op op(env, object);
  HostOp functions;
  functions.shape = [op](const std::vector<OpType>& inputs) { return op.shape(inputs); };
  functions.forward = [op](const std::vector<View>& inputs, const std::vector<View>& outputs) { op.forward(inputs, outputs); };
  functions.backward = [op](const std::vector<View>& inputs, const std::vector<View>& outputs, const std::vector<View>& d_outputs,
                            const std::vector<View>& d_inputs) { op.backward(inputs, outputs, d_outputs, d_inputs); };
  return functions;
}

}  // namespace scaletrain::java
