// How long one row takes: st_predictor_run on an mlp 64-64-8 through the C ABI, one thread, repeated. Prints median and p90 in
// microseconds.
#include <scaletrain/scaletrain.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

bool failed(st_status status) {
  if (status != ST_OK) std::fprintf(stderr, "%s\n", st_last_error());
  return status != ST_OK;
}

}  // namespace

int main() {
  using Clock = std::chrono::steady_clock;
  constexpr int kRuns = 200'000, kGroup = 10;  // a group at a time: the clock itself takes tens of nanoseconds
  st_context* context = nullptr;
  st_model* model = nullptr;
  st_predictor* predictor = nullptr;
  if (failed(st_context_create(nullptr, &context)) ||
      failed(st_model_builtin(context, "mlp", R"({"inputs": 64, "hidden": [64], "outputs": 8})", 1, &model)) ||
      failed(st_predictor_create(model, nullptr, &predictor)))
    return 1;
  const int64_t in_dims[] = {1, 64}, out_dims[] = {1, 8};
  float x[64] = {1, -1}, y[8];
  const st_named_view in = {"x", {ST_F32, 2, in_dims, nullptr, x, sizeof x}};
  const st_named_view out = {"prediction", {ST_F32, 2, out_dims, nullptr, y, sizeof y}};
  std::vector<double> times;
  for (int i = 0; i < kRuns / kGroup; ++i) {
    const auto start = Clock::now();
    for (int k = 0; k < kGroup; ++k)
      if (failed(st_predictor_run(predictor, 1, &in, 1, &out))) return 1;
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kGroup);
  }
  std::sort(times.begin(), times.end());
  std::printf("one row of mlp 64-64-8: median %.2f us, p90 %.2f us\n", times[times.size() / 2], times[times.size() * 9 / 10]);
  st_predictor_destroy(predictor);
  st_model_destroy(model);
  st_context_destroy(context);
  return 0;
}
