// Latency of one row: st_predictor_run on an mlp 64-64-8 through the C ABI, one thread, repeated. Prints median and p90 in microseconds.
#include <chrono>
#include <cstdio>
#include <vector>

#include "samples.h"

using bench::hold;

int main() {
  using Clock = std::chrono::steady_clock;
  constexpr int kRuns = 200'000, kGroup = 10;  // timed in groups, since reading the clock takes tens of nanoseconds
  st_context* context = nullptr;
  st_model* model = nullptr;
  st_predictor* predictor = nullptr;
  hold(st_context_create(nullptr, &context));
  hold(st_model_builtin(context, "mlp", R"({"inputs": 64, "hidden": [64], "outputs": 8})", 1, &model));
  hold(st_predictor_create(model, nullptr, &predictor));
  const int64_t in_dims[] = {1, 64}, out_dims[] = {1, 8};
  float x[64] = {1, -1}, y[8];
  const st_named_view in = {"x", {ST_F32, 2, in_dims, nullptr, x, sizeof x}};
  const st_named_view out = {"prediction", {ST_F32, 2, out_dims, nullptr, y, sizeof y}};
  std::vector<double> times;
  for (int i = 0; i < kRuns / kGroup; ++i) {
    const auto start = Clock::now();
    for (int k = 0; k < kGroup; ++k) hold(st_predictor_run(predictor, 1, &in, 1, &out));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kGroup);
  }
  std::printf("one row of mlp 64-64-8: median %.2f us, p90 %.2f us\n", bench::median(times), bench::quantile(times, 0.9));
  st_predictor_destroy(predictor);
  st_model_destroy(model);
  st_context_destroy(context);
  return 0;
}
