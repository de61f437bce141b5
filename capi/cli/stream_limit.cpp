#include "stream_limit.h"

#include <atomic>
#include <thread>

#include "seconds_now.h"

namespace cli {
namespace {

using Lanes = float __attribute__((vector_size(64), aligned(4)));
constexpr int64_t kLanes = 16;

Lanes& at(float* array, int64_t element) { return *reinterpret_cast<Lanes*>(array + element); }

}  // namespace

StreamLimit::StreamLimit(int64_t elements, int threads)
    : elements_(elements),
      threads_(threads),
      gradient_(static_cast<size_t>(elements), 1.F),
      parameter_(gradient_),
      moment1_(gradient_),
      moment2_(gradient_) {}

double StreamLimit::measure() {
  std::atomic<int> read = 0;
  const auto part = [&](int index) {
    const int64_t begin = elements_ * index / threads_, end = elements_ * (index + 1) / threads_ - kLanes + 1;
    float *g = gradient_.data(), *p = parameter_.data(), *m = moment1_.data(), *v = moment2_.data();
    Lanes sum0 = {}, sum1 = {}, sum2 = {}, sum3 = {};  // an array of them would stay in memory
    for (int64_t i = begin; i < end - 3 * kLanes; i += 4 * kLanes) {
      sum0 += at(g, i);
      sum1 += at(g, i + kLanes);
      sum2 += at(g, i + 2 * kLanes);
      sum3 += at(g, i + 3 * kLanes);
    }
    const Lanes sum = sum0 + sum1 + sum2 + sum3;
    asm volatile("" ::"m"(sum));  // makes the compiler assume that it is used
    for (++read; read < threads_;) {
    }
    for (int64_t i = begin; i < end; i += kLanes) {
      const Lanes all = at(g, i) + at(p, i) + at(m, i) + at(v, i);
      at(p, i) = all, at(m, i) = all, at(v, i) = all;
    }
  };
  const double start = seconds_now();
  std::vector<std::thread> others;
  for (int index = 1; index < threads_; ++index) others.emplace_back(part, index);
  part(0);
  for (std::thread& other : others) other.join();
  return static_cast<double>(elements_) / (seconds_now() - start);
}

}  // namespace cli
