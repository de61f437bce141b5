// Two threads relative to one: a product through the C ABI by a plan of one thread and a plan of two, in turn, in one process.
// Run: gemm_threads [rounds] [MxNxK ...]. Prints per product GFLOP/s of both and the ratio: median, 10th and 90th percentile.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "samples.h"

namespace {

using bench::hold;
using Clock = std::chrono::steady_clock;

struct Shape {
  int64_t m, n, k;
};

class Plan {
 public:
  Plan(st_context* context, const Shape& shape, int threads, bool packed, const std::vector<float>& a, const std::vector<float>& b)
      : flop_(2e-9 * static_cast<double>(shape.m * shape.n * shape.k)),
        c_(static_cast<size_t>(shape.m * shape.n)),
        dims_{{shape.m, shape.k}, {shape.k, shape.n}, {shape.m, shape.n}} {
    st_gemm_problem problem;
    hold(st_gemm_problem_init(&problem, sizeof problem));
    problem.m = shape.m, problem.n = shape.n, problem.k = shape.k;
    st_gemm_schedule schedule;
    hold(st_gemm_schedule_init(&schedule, sizeof schedule));
    schedule.threads = threads;
    hold(st_gemm_plan_create(context, &problem, &schedule, &gemm_));
    a_ = view(0, const_cast<float*>(a.data()), a.size());
    b_ = view(1, const_cast<float*>(b.data()), b.size());
    out_ = view(2, c_.data(), c_.size());
    if (packed) hold(st_gemm_pack(gemm_, &b_, &packed_));
  }
  ~Plan() {
    if (packed_ != nullptr) hold(st_packed_destroy(packed_));
    hold(st_gemm_plan_destroy(gemm_));
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void run() {
    hold(packed_ == nullptr ? st_gemm_run(gemm_, 1, &a_, &b_, 0, &out_, nullptr)
                            : st_gemm_run_packed(gemm_, 1, &a_, packed_, 0, &out_, nullptr));
  }
  /// GFLOP/s over some 3 ms, after some untimed runs.
  double sample() {
    constexpr double kSeconds = 3e-3;
    const auto warm_until = Clock::now() + std::chrono::duration<double>(kSeconds / 6);
    do {
      run();
    } while (Clock::now() < warm_until);
    const auto start = Clock::now();
    std::chrono::duration<double> passed;
    int runs = 0;
    do {
      for (int i = 0; i < batch_; ++i) run();
      runs += batch_;
      passed = Clock::now() - start;
    } while (passed.count() < kSeconds);
    batch_ = std::max(1, runs / 16);
    return flop_ * runs / passed.count();
  }

 private:
  st_view view(int which, float* data, size_t elements) const {
    return {ST_F32, 2, dims_[which], nullptr, data, static_cast<int64_t>(elements * sizeof(float))};
  }

  double flop_;
  std::vector<float> c_;
  int64_t dims_[3][2];
  st_gemm* gemm_ = nullptr;
  st_packed* packed_ = nullptr;
  st_view a_, b_, out_;
  int batch_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 25;
  std::vector<Shape> shapes;
  for (int i = 2; i < argc; ++i) {
    long long m = 0, n = 0, k = 0;
    if (std::sscanf(argv[i], "%lldx%lldx%lld", &m, &n, &k) == 3) shapes.push_back({m, n, k});
  }
  if (shapes.empty())
    shapes = {{32, 32, 32},    {64, 64, 64},       {96, 96, 96},       {128, 128, 128}, {192, 192, 192},  {256, 256, 256}, {257, 257, 257},
              {512, 512, 512}, {1000, 1000, 1000}, {1024, 1024, 1024}, {1, 3072, 768},  {4, 3072, 768},   {8, 3072, 768},  {8, 768, 3072},
              {16, 3072, 768}, {37, 1013, 511},    {64, 768, 768},     {128, 768, 768}, {256, 3072, 768}, {256, 768, 3072}};
  st_context* context = nullptr;
  hold(st_context_create(nullptr, &context));
  for (const Shape& shape : shapes) {
    std::vector<float> a(static_cast<size_t>(shape.m * shape.k), 0.5F), b(static_cast<size_t>(shape.k * shape.n), 0.25F);
    for (const bool packed : {false, true}) {
      Plan one(context, shape, 1, packed, a, b), two(context, shape, 2, packed, a, b);
      std::vector<double> alone, both, ratio;
      for (int i = 0; i < rounds; ++i) {
        alone.push_back(one.sample());
        both.push_back(two.sample());
        ratio.push_back(both.back() / alone.back());
      }
      const std::string name = std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
      std::printf("%-18s %-7s one %6.1f  two %6.1f GFLOP/s  two / one %.2f (%.2f to %.2f)\n", name.c_str(), packed ? "packed" : "",
                  bench::median(alone), bench::median(both), bench::median(ratio), bench::quantile(ratio, 0.1),
                  bench::quantile(ratio, 0.9));
      std::fflush(stdout);
    }
  }
  hold(st_context_destroy(context));
  return 0;
}
