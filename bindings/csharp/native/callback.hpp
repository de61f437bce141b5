// Wraps C# functions as library callbacks, which run on any thread. A function is a GCHandle; a static method of ScaleTrain/Callbacks.cs
// resolves it to the delegate.
#pragma once

#include <array>
#include <scaletrain/communicator.hpp>
#include <scaletrain/pipeline.hpp>
#include <scaletrain/predictor.hpp>

#include "managed.hpp"

namespace scaletrain::csharp {

inline StepFunction step_function(void* handle) {
  if (handle == nullptr) return StepFunction();
  return [user = Managed(handle)](const StepReport& report) {
    int32_t goes_on = 1;
    call(table().step, user.get(), record(report), &goes_on);
    return goes_on != 0;
  };
}

inline TokenFunction token_function(void* handle) {
  if (handle == nullptr) return TokenFunction();
  return [user = Managed(handle)](int32_t token) {
    int32_t goes_on = 1;
    call(table().token, user.get(), token, &goes_on);
    return goes_on != 0;
  };
}

inline RateFunction rate_function(void* handle) {
  if (handle == nullptr) return RateFunction();
  return [user = Managed(handle)](int64_t step) {
    double rate = 0;
    call(table().rate, user.get(), step, &rate);
    return rate;
  };
}

inline LogFunction log_function(void* handle) {
  if (handle == nullptr) return LogFunction();
  return [user = Managed(handle)](LogLevel level, const char* area, const char* text) {
    call(table().log, user.get(), static_cast<int32_t>(level), area, text);
  };
}

using Task = std::function<void(int64_t)>;

inline ParallelFunction parallel_function(void* handle) {
  if (handle == nullptr) return ParallelFunction();
  return [user = Managed(handle)](int64_t n, const Task& task) { call(table().parallel, user.get(), n, static_cast<const void*>(&task)); };
}
/// Runs one task of a parallel function that has not returned yet. The task is library code and does not throw.
inline void run_task(const void* task, int64_t i) { (*static_cast<const Task*>(task))(i); }

inline WriteFunction write_function(void* handle) {
  return [user = Managed(handle)](const void* bytes, int64_t count) { call(table().write, user.get(), bytes, count); };
}

inline ReadFunction read_function(void* handle) {
  return [user = Managed(handle)](void* bytes, int64_t room) {
    int64_t count = 0;
    call(table().read, user.get(), bytes, room, &count);
    return count;
  };
}

inline FillFunction fill_function(void* handle) {
  return [user = Managed(handle)](const int64_t* rows, int64_t count, const std::vector<View>& views) {
    const std::vector<RawView> raw = raw_of(views, true);
    call(table().fill, user.get(), count, rows, static_cast<int64_t>(raw.size()), raw.data());
  };
}

/// A transport written in C#, kept until the group is over. The text of its exception becomes the reason for the group's end.
inline Transport transport_of(void* handle) {
  static constexpr int32_t kRoom = 512;  // size of a reason, which stays empty unless the transport throws
  const Managed user(handle);
  const auto checked = [](int64_t moved, const std::array<char, kRoom>& reason) {
    if (reason[0] != '\0') throw Error(Status::callback, reason.data());
    return moved;
  };
  Transport transport;
  transport.write = [user, checked](int32_t to, const void* data, int64_t bytes) {
    int64_t taken = 0;
    std::array<char, kRoom> reason{};
    call(table().write_to, user.get(), to, data, bytes, &taken, static_cast<void*>(reason.data()), kRoom);
    return checked(taken, reason);
  };
  transport.read = [user, checked](int32_t from, void* data, int64_t bytes) {
    int64_t given = 0;
    std::array<char, kRoom> reason{};
    call(table().read_from, user.get(), from, data, bytes, &given, static_cast<void*>(reason.data()), kRoom);
    return checked(given, reason);
  };
  return transport;
}

/// Keeps a borrowed C# object alive until the library releases it.
inline ReleaseFunction release_function(void* handle) {
  return [held = std::make_shared<Managed>(handle)] { held->reset(); };
}

/// A stage written in C#: an array of its functions.
inline Stage stage_of(void* handle) {
  const auto function = [user = Managed(handle)](int32_t phase) {
    return [user, phase](const StageWork& work) {
      const std::array<RawView, 4> views = {raw_of(work.input, false), raw_of(work.output, phase == 0), raw_of(work.output_gradient, false),
                                            raw_of(work.input_gradient, phase == 1)};
      call(table().stage, user.get(), phase, work.part, work.chunk, work.micro_batch, views.data());
    };
  };
  return {function(0), function(1), function(2)};
}

/// An op written in C#.
inline HostOp host_op(void* handle, int32_t outputs, bool has_backward) {
  const Managed user(handle);
  HostOp op;
  op.outputs = outputs;
  op.shape = [user, outputs](const std::vector<OpType>& inputs) {
    const auto bare = [](const OpType& type) { return raw_of(View(type.dtype, static_cast<const void*>(nullptr), type.dims, 0), false); };
    std::vector<RawView> in, out(static_cast<size_t>(outputs));
    for (const OpType& type : inputs) in.push_back(bare(type));
    call(table().shape, user.get(), static_cast<int64_t>(in.size()), in.data(), static_cast<int64_t>(out.size()), out.data());
    std::vector<OpType> types;
    for (const RawView& type : out)
      types.push_back({static_cast<DType>(type.dtype), std::vector<int64_t>(type.dims, type.dims + type.rank)});
    return types;
  };
  op.forward = [user](const std::vector<View>& inputs, const std::vector<View>& results) {
    const std::vector<RawView> in = raw_of(inputs, false), out = raw_of(results, true);
    call(table().forward, user.get(), static_cast<int64_t>(in.size()), in.data(), static_cast<int64_t>(out.size()), out.data());
  };
  if (has_backward)
    op.backward = [user](const std::vector<View>& inputs, const std::vector<View>& results, const std::vector<View>& d_outputs,
                         const std::vector<View>& d_inputs) {
      const std::vector<RawView> in = raw_of(inputs, false), out = raw_of(results, false), d_out = raw_of(d_outputs, false),
                                 d_in = raw_of(d_inputs, true);
      call(table().backward, user.get(), static_cast<int64_t>(in.size()), in.data(), static_cast<int64_t>(out.size()), out.data(),
           d_out.data(), d_in.data());
    };
  return op;
}

}  // namespace scaletrain::csharp
