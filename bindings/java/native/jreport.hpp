// Converts reports and lists to Java: records of org.scaletrain, arrays of numbers and strings. Each result is a new local reference.
#pragma once

#include <scaletrain/checkpoint.hpp>
#include <scaletrain/context.hpp>
#include <scaletrain/graph.hpp>
#include <scaletrain/model.hpp>
#include <scaletrain/optimizer.hpp>
#include <scaletrain/trainer.hpp>

#include "jarray.hpp"

namespace scaletrain::java {

inline jboolean yes(bool value) { return value ? JNI_TRUE : JNI_FALSE; }

inline jobjectArray new_texts(JNIEnv* env, const std::vector<std::string>& texts) {
  const jobjectArray all = made(env, env->NewObjectArray(static_cast<jsize>(texts.size()), Machine::here().text, nullptr));
  for (size_t i = 0; i < texts.size(); ++i) {
    const jstring text = new_text(env, texts[i]);
    env->SetObjectArrayElement(all, static_cast<jsize>(i), text);
    env->DeleteLocalRef(text);
  }
  return all;
}

inline jobject to_java(JNIEnv* env, const StepReport& report) {
  const Machine& machine = Machine::here();
  return made(
      env, env->NewObject(machine.step_report, machine.make_step_report, yes(report.skipped), static_cast<jlong>(report.step), report.loss,
                          report.lr, report.grad_norm, report.loss_scale, static_cast<jlong>(report.tokens), report.tokens_per_second,
                          report.milliseconds, static_cast<jlong>(report.memory_bytes), report.gradient_noise_scale,
                          report.save_error.empty() ? nullptr : new_text(env, report.save_error), static_cast<jlong>(report.saved_step)));
}
inline jobject to_java(JNIEnv* env, const OptimizerReport& report) {
  const Machine& machine = Machine::here();
  return made(env, env->NewObject(machine.optimizer_report, machine.make_optimizer_report, yes(report.skipped),
                                  static_cast<jlong>(report.step), report.lr, report.norm));
}
inline jobject to_java(JNIEnv* env, const Evaluation& evaluation) {
  std::vector<std::string> names;
  std::vector<double> means;
  for (const Metric& metric : evaluation.metrics) {
    names.push_back(metric.name);
    means.push_back(metric.mean);
  }
  const jdoubleArray values = made(env, env->NewDoubleArray(static_cast<jsize>(means.size())));
  env->SetDoubleArrayRegion(values, 0, static_cast<jsize>(means.size()), means.data());
  const Machine& machine = Machine::here();
  return made(env, env->CallStaticObjectMethod(machine.callbacks, machine.make_evaluation, evaluation.loss, evaluation.count,
                                               new_texts(env, names), values));
}
inline jobject to_java(JNIEnv* env, const MemoryStats& stats) {
  const Machine& machine = Machine::here();
  const jobjectArray roles = made(env, env->NewObjectArray(static_cast<jsize>(stats.roles.size()), machine.memory_use, nullptr));
  for (size_t i = 0; i < stats.roles.size(); ++i) {
    const MemoryUse& use = stats.roles[i];
    env->SetObjectArrayElement(roles, static_cast<jsize>(i),
                               made(env, env->NewObject(machine.memory_use, machine.make_memory_use, new_text(env, use.role),
                                                        static_cast<jlong>(use.bytes), static_cast<jlong>(use.peak_bytes))));
  }
  return made(env, env->CallStaticObjectMethod(machine.callbacks, machine.make_memory_stats, static_cast<jlong>(stats.allocated_bytes),
                                               static_cast<jlong>(stats.available_bytes), static_cast<jlong>(stats.resident_bytes),
                                               static_cast<jlong>(stats.peak_bytes), static_cast<jlong>(stats.limit_bytes), roles));
}
inline jobject to_java(JNIEnv* env, const ParameterInfo& info) {
  const Machine& machine = Machine::here();
  return made(env, env->CallStaticObjectMethod(machine.callbacks, machine.make_parameter_info, new_text(env, info.name),
                                               static_cast<jint>(info.dtype), new_longs(env, info.dims), yes(info.trainable)));
}
inline jobject to_java(JNIEnv* env, const ReadReport& report) {
  const Machine& machine = Machine::here();
  return made(env, env->CallStaticObjectMethod(machine.callbacks, machine.make_read_report, static_cast<jlong>(report.read),
                                               new_texts(env, report.missing), new_texts(env, report.unexpected)));
}
inline jobject to_java(JNIEnv* env, const LoadReport& report) {
  const Machine& machine = Machine::here();
  return made(env, env->CallStaticObjectMethod(machine.callbacks, machine.make_load_report, static_cast<jlong>(report.step),
                                               new_text(env, report.name), new_text(env, report.metadata), static_cast<jlong>(report.read),
                                               new_texts(env, report.missing), new_texts(env, report.unexpected),
                                               new_texts(env, report.skipped), new_texts(env, report.changed)));
}
inline jobject to_java(JNIEnv* env, const SaveProgress& now) {
  const Machine& machine = Machine::here();
  return made(env,
              env->NewObject(machine.save_progress, machine.make_save_progress, static_cast<jlong>(now.bytes_done),
                             static_cast<jlong>(now.bytes_all), static_cast<jlong>(now.waiting), static_cast<jlong>(now.saved),
                             static_cast<jlong>(now.failed), static_cast<jlong>(now.saved_step), now.blocked_seconds, now.write_seconds));
}
inline jobject new_type(JNIEnv* env, DType dtype, const std::vector<int64_t>& dims) {
  const Machine& machine = Machine::here();
  return made(env, env->CallStaticObjectMethod(machine.callbacks, machine.make_type, static_cast<jint>(dtype), new_longs(env, dims)));
}
inline jobject to_java(JNIEnv* env, const ValueInfo& info) { return new_type(env, info.dtype, info.dims); }

/// The values of `graph` with these ids.
inline std::vector<Value> values_of(JNIEnv* env, jintArray ids, const Graph& graph) {
  std::vector<Value> values;
  for (const int32_t id : ints_of(env, ids, "values")) values.emplace_back(graph.get(), id, scaletrain::detail::Access::host(graph).get());
  return values;
}
inline jintArray new_ids(JNIEnv* env, const std::vector<Value>& values) {
  std::vector<jint> ids;
  for (const Value& value : values) ids.push_back(value.id());
  const jintArray all = made(env, env->NewIntArray(static_cast<jsize>(ids.size())));
  env->SetIntArrayRegion(all, 0, static_cast<jsize>(ids.size()), ids.data());
  return all;
}

/// Alternates an ArrayType and a ByteBuffer; a view without memory becomes two nulls.
inline jobjectArray shown(JNIEnv* env, const std::vector<View>& views) {
  const jobjectArray pairs = made(env, env->NewObjectArray(static_cast<jsize>(2 * views.size()), Machine::here().object, nullptr));
  for (size_t i = 0; i < views.size(); ++i) {
    if (views[i].data() == nullptr) continue;
    const jobject type = new_type(env, views[i].dtype(), views[i].dims()), buffer = new_buffer(env, views[i]);
    env->SetObjectArrayElement(pairs, static_cast<jsize>(2 * i), type);
    env->SetObjectArrayElement(pairs, static_cast<jsize>(2 * i + 1), buffer);
    env->DeleteLocalRef(type);
    env->DeleteLocalRef(buffer);
  }
  return pairs;
}
/// Repeats a name, an ArrayType and a ByteBuffer.
inline jobjectArray shown(JNIEnv* env, const Views& views) {
  const jobjectArray triples = made(env, env->NewObjectArray(static_cast<jsize>(3 * views.size()), Machine::here().object, nullptr));
  jsize at = 0;
  for (const NamedView& named : views) {
    for (const jobject part : {static_cast<jobject>(new_text(env, named.name)), new_type(env, named.view.dtype(), named.view.dims()),
                               new_buffer(env, named.view)}) {
      env->SetObjectArrayElement(triples, at++, part);
      env->DeleteLocalRef(part);
    }
  }
  return triples;
}

}  // namespace scaletrain::java
