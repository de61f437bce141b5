// Callbacks of a host that misbehaves: they fail, return nonsense, and call the library.
#pragma once

#include "fuzz_world.h"

namespace st::fuzz {

/// The user pointer of callbacks that run within a call, on the fuzzer's thread.
struct Caller {
  World& world;
  int64_t left;         // calls before it fails; < 0: never
  int64_t replay = -1;  // a read's position in the world's stream; < 0: it makes up bytes
  bool fails() { return left >= 0 && left-- == 0; }
};

st_status on_step(void* caller, const st_step_report* report);
st_status on_token(void* caller, int32_t token);
st_status write_bytes(void* caller, const void* bytes, int64_t count);
st_status read_bytes(void* caller, void* bytes, int64_t room, int64_t* count);

/// The behaviour and the handle of callbacks on other threads, which cannot use the world.
struct Elsewhere {
  std::atomic<int> fill_behaviour{0}, op_behaviour{0}, alloc_failures{0}, rate_behaviour{0};
  std::atomic<st_trainer*> trainer{nullptr};
  std::atomic<st_context*> context{nullptr};
  std::atomic<int64_t> allocated{0};
};
Elsewhere& elsewhere();

st_status learning_rate(void* user, int64_t k, double* lr);
st_status fill_rows(void* user, int64_t k, const int64_t* row_ids, int64_t n, const st_view* views);
st_status op_shape(void* user, int32_t n, const st_op_type* inputs, int32_t m, st_op_type* outputs);
st_status op_forward(void* user, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs);
st_status op_backward(void* user, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs, const st_view* d_outputs,
                      const st_view* d_inputs);
void log_record(void* user, int32_t level, const char* area, const char* text);
void parallel(void* user, int64_t n, st_task_fn task, void* arg);
void* allocate(void* user, size_t bytes, size_t align);
void release_memory(void* user, void* memory);

}  // namespace st::fuzz
