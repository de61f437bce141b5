// Two ops of the host, "square" and "mix", and what is needed to register similar ones.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "held.h"

namespace st::test {

inline int64_t elements(const st_view& view) { return view.bytes / 4; }
inline float* values(const st_view& view) {
  EXPECT_EQ(view.device, 0) << "a callback's arrays are in the host's memory";
  return static_cast<float*>(view.data);
}

/// `user` of the ops: each callback counts its calls here after it has computed; the call number `at` does what the test asks for.
struct Watch {
  int64_t calls = 0, at = -1;
  std::function<st_status()> act = [] { return st_status{ST_OK}; };
  st_status operator()() { return calls++ == at ? act() : ST_OK; }
  void then(int64_t call, std::function<st_status()> next) {
    calls = 0;
    at = call;
    act = std::move(next);
  }
};

/// The shape callback of ops whose outputs all have the type of the first input.
st_status as_the_first(void* user, int32_t n, const st_op_type* inputs, int32_t m, st_op_type* outputs);

/// x -> x^2. `user` is a Watch or NULL.
st_status square(void* user, int32_t n, const st_view* in, int32_t m, const st_view* out);
st_status square_backward(void* user, int32_t n, const st_view* in, int32_t m, const st_view* out, const st_view* dy, const st_view* dx);

st_op_callbacks callbacks(st_op_forward_fn forward, st_op_backward_fn backward, int32_t outputs = 1, st_op_shape_fn shape = as_the_first);

/// "square", and "mix": a, b -> a b, a + b.
void register_square_and_mix(st_context* context, Watch* watch = nullptr);

}  // namespace st::test
