// A context: the device, threads, allocator and log that computing uses.
#pragma once

#include <scaletrain/context.h>
#include <scaletrain/host_op.h>
#include <scaletrain/machine.h>

#include <optional>
#include <scaletrain/handle.hpp>
#include <scaletrain/view.hpp>
#include <string>
#include <thread>
#include <vector>

namespace scaletrain {

enum class LogLevel : int32_t { error = 0, warning = 1, info = 2, debug = 3 };

using LogFunction = std::function<void(LogLevel, const char* area, const char* text)>;
/// Calls task(i) for every 0 <= i < n and returns when all calls have returned. If it throws, no call may be running or start later.
using ParallelFunction = std::function<void(int64_t n, const std::function<void(int64_t)>& task)>;

/// The functions are called from any thread and live as long as an object of the context. An exception from log or parallel does not end
/// the call that it was thrown in; it is rethrown when that call, or the context's next one, has ended.
struct ContextOptions {
  int32_t threads = 0;  // per trainer; 0: this process's cores
  std::string device = "cpu";
  int64_t memory_limit = 0;  // bytes; 0: what the machine has
  LogFunction log;
  ParallelFunction parallel;
  std::function<void*(size_t bytes, size_t align)> alloc;  // set with free or not at all; null or an exception: out of memory
  std::function<void(void*)> free;
  std::optional<std::string> tuning_cache{};  // its file; "": none; nullopt: as the environment says
  bool late_parameters = false;  // models allocate parameters at first use: in a group with zero 3, with zero 1 or 2 in 16 bits, or
                                 // with stages, only a rank's part
};

struct MemoryUse {
  std::string role;  // "parameters", ...: st_memory_role_name
  int64_t bytes = 0, peak_bytes = 0;
};

struct MemoryStats {
  int64_t allocated_bytes = 0, available_bytes = 0, resident_bytes = 0;
  int64_t peak_bytes = 0;        // maximum of allocated_bytes
  int64_t limit_bytes = 0;       // 0: none
  std::vector<MemoryUse> roles;  // roles used so far; their bytes add up to allocated_bytes
};

/// The type of a host op's input or output: dims[0] < 0 is a multiple of the batch.
struct OpType {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
};

/// An op of the host: computes types of outputs from types of inputs, and outputs from inputs. An exception ends the call that ran it and
/// is rethrown there. In backward, an element of d_inputs with data() null needs no gradient.
struct HostOp {
  std::function<std::vector<OpType>(const std::vector<OpType>& inputs)> shape;
  std::function<void(const std::vector<View>& inputs, const std::vector<View>& outputs)> forward;
  std::function<void(const std::vector<View>& inputs, const std::vector<View>& outputs, const std::vector<View>& d_outputs,
                     const std::vector<View>& d_inputs)>
      backward;  // empty: not differentiable
  int32_t outputs = 1;
  detail::Fault* fault = nullptr;  // Context's
};

class Context : public detail::Handle<st_context, st_context_destroy> {
 public:
  Context() : Context(ContextOptions()) {}
  explicit Context(const ContextOptions& options);

  /// Ends what is running, with Status::cancelled. In a signal handler use st_context_cancel(context.get()).
  void cancel() const { check(st_context_cancel(get())); }
  void trim() const { done(st_context_trim(get())); }
  /// The program's stream on the context's device: a cudaStream_t as a number; 1 (until this is called), CUDA's default stream; -1: none.
  /// CUDA's per-thread default streams are refused. Calls that take arrays of the device come after what it has been given.
  void use_stream(int64_t stream) const { done(st_context_use_stream(get(), stream)); }
  int64_t stream() const {
    int64_t stream = 0;
    done(st_context_stream(get(), &stream));
    return stream;
  }
  MemoryStats memory() const {
    st_memory_stats raw;
    done(st_memory_stats_init(&raw, sizeof raw));
    done(st_context_memory(get(), &raw));
    MemoryStats stats{raw.allocated_bytes, raw.available_bytes, raw.resident_bytes, raw.peak_bytes, raw.limit_bytes, {}};
    for (int32_t role = 0; role < ST_MEMORY_ROLES; ++role) {
      if (raw.role_peak_bytes[role] == 0) continue;
      const char* name = nullptr;
      done(st_memory_role_name(role, &name));
      stats.roles.push_back({name, raw.role_bytes[role], raw.role_peak_bytes[role]});
    }
    return stats;
  }
  /// Sets every peak of memory() to the present value.
  void reset_peak() const { done(st_context_reset_peak(get())); }
  /// Measures this machine for plans: its rates as JSON (machine.h). `options`: a JSON object with seconds and quick; empty: the defaults.
  std::string calibrate(const std::string& options = "") const {
    const char* machine = "";
    done(st_machine_calibrate(get(), options.c_str(), &machine));
    return machine;
  }
  /// Adds the op `name` to this context's graphs.
  void register_op(const std::string& name, const HostOp& op) const;

 private:
};

namespace detail {

inline void log_record(void* user, int32_t level, const char* area, const char* text) {
  Host& host = *static_cast<Host*>(user);
  shielded(host.service, [&] { host.log(level, area, text); });
}

/// Whatever index the host passes, the next task is run, so every task runs once, even if the host throws halfway.
class TaskRange {
 public:
  TaskRange(int64_t n, st_task_fn task, void* arg) : n_(n), task_(task), arg_(arg) {}
  void next() noexcept {
    const int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= n_) return;
    task_(arg_, i);
    done_.fetch_add(1, std::memory_order_release);
  }
  void finish() noexcept {
    while (next_.load(std::memory_order_relaxed) < n_) next();
    while (done_.load(std::memory_order_acquire) < n_) std::this_thread::yield();
  }

 private:
  int64_t n_;
  st_task_fn task_;
  void* arg_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> done_{0};
};

inline void parallel_for(void* user, int64_t n, st_task_fn task, void* arg) {
  Host& host = *static_cast<Host*>(user);
  TaskRange range(n, task, arg);
  shielded(host.service, [&] { host.parallel(n, [&range](int64_t) { range.next(); }); });
  range.finish();
}

inline void* allocate(void* user, size_t bytes, size_t align) {
  Host& host = *static_cast<Host*>(user);
  void* memory = nullptr;
  try {
    memory = host.alloc(bytes, align);
  } catch (const std::bad_alloc&) {  // the library's own message has the bytes needed
  } catch (...) {
    host.callback.keep();
  }
  return memory;
}

inline void deallocate(void* user, void* memory) {
  Host& host = *static_cast<Host*>(user);
  shielded(host.service, [&] { host.free(memory); });
}

inline std::vector<View> views_of(int32_t n, const st_view* raw) {
  std::vector<View> views;
  views.reserve(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) views.emplace_back(raw[i]);
  return views;
}

inline st_op_type raw_type(const char* whose, const OpType& type) {
  if (type.dims.size() > 8)
    throw Error(Status::invalid_argument, std::string(whose) + " rank " + std::to_string(type.dims.size()) + "; at most 8 is allowed");
  st_op_type raw{static_cast<st_dtype>(type.dtype), static_cast<int32_t>(type.dims.size()), {}};
  for (size_t d = 0; d < type.dims.size(); ++d) raw.dims[d] = type.dims[d];
  return raw;
}

inline st_status op_shape(void* user, int32_t n, const st_op_type* inputs, int32_t m, st_op_type* outputs) {
  const HostOp& op = *static_cast<const HostOp*>(user);
  return shielded(*op.fault, [&] {
    std::vector<OpType> in;
    for (int32_t i = 0; i < n; ++i)
      in.push_back({static_cast<DType>(inputs[i].dtype), std::vector<int64_t>(inputs[i].dims, inputs[i].dims + inputs[i].rank)});
    const std::vector<OpType> out = op.shape(in);
    if (out.size() != static_cast<size_t>(m))
      throw Error(Status::invalid_argument,
                  "host op: shape gave " + std::to_string(out.size()) + " types for " + std::to_string(m) + " outputs");
    for (const OpType& type : out) *outputs++ = raw_type("host op: shape returned", type);
  });
}

inline st_status op_forward(void* user, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs) {
  const HostOp& op = *static_cast<const HostOp*>(user);
  return shielded(*op.fault, [&] { op.forward(views_of(n, inputs), views_of(m, outputs)); });
}

inline st_status op_backward(void* user, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs, const st_view* d_outputs,
                             const st_view* d_inputs) {
  const HostOp& op = *static_cast<const HostOp*>(user);
  return shielded(*op.fault,
                  [&] { op.backward(views_of(n, inputs), views_of(m, outputs), views_of(m, d_outputs), views_of(n, d_inputs)); });
}

}  // namespace detail

inline Context::Context(const ContextOptions& options) : Handle(std::make_shared<detail::Host>()) {
  detail::Host& mine = *host();
  if (options.log)
    mine.log = [log = options.log](int32_t level, const char* area, const char* text) { log(static_cast<LogLevel>(level), area, text); };
  mine.parallel = options.parallel;
  mine.alloc = options.alloc;
  mine.free = options.free;
  st_context_options raw;
  done(st_context_options_init(&raw, sizeof raw));
  raw.threads = options.threads;
  raw.device = options.device.c_str();
  raw.memory_limit = options.memory_limit;
  raw.tuning_cache = options.tuning_cache ? options.tuning_cache->c_str() : nullptr;
  raw.late_parameters = options.late_parameters ? 1 : 0;
  raw.log = mine.log ? detail::log_record : nullptr;
  raw.parallel = mine.parallel ? detail::parallel_for : nullptr;
  raw.alloc = mine.alloc ? detail::allocate : nullptr;
  raw.free = mine.free ? detail::deallocate : nullptr;
  raw.log_user = raw.parallel_user = raw.memory_user = &mine;
  done(st_context_create(&raw, out()));
  mine.context = get();
}

inline void Context::register_op(const std::string& name, const HostOp& op) const {
  st_op_callbacks raw;
  done(st_op_callbacks_init(&raw, sizeof raw));
  raw.outputs = op.outputs;
  raw.shape = op.shape ? detail::op_shape : nullptr;
  raw.forward = op.forward ? detail::op_forward : nullptr;
  raw.backward = op.backward ? detail::op_backward : nullptr;
  auto held = std::make_shared<HostOp>(op);
  if (host()) {  // null: a closed context, which the call refuses
    held->fault = &host()->callback;
    const std::lock_guard<std::mutex> lock(host()->ops_mutex);
    host()->ops.push_back(held);
  }
  done(st_op_register(get(), name.c_str(), &raw, held.get()));
}

}  // namespace scaletrain
