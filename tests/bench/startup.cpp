// Time to create and destroy a context and a model of 1 MB: median and worst of 200 in a warm process, and the very first.
#include <chrono>

#include "samples.h"

namespace {

/// Milliseconds.
double come_up() {
  const auto start = std::chrono::steady_clock::now();
  st_context* context = nullptr;
  st_model* model = nullptr;
  bench::hold(st_context_create(nullptr, &context));
  // 512 x 500 + 500 and 500 x 8 + 8 f32 numbers.
  bench::hold(st_model_builtin(context, "mlp", R"({"inputs": 512, "hidden": [500], "outputs": 8})", 1, &model));
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  st_model_destroy(model);
  st_context_destroy(context);
  return taken.count();
}

}  // namespace

int main() {
  const double first = come_up();
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) times.push_back(come_up());
  std::printf("context and model of 1 MB: first %.2f ms, median %.2f ms, worst %.2f ms (goal: 5 ms)\n", first, bench::median(times),
              bench::quantile(times, 1));
  return 0;
}
