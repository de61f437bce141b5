#include "copy_limit.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "seconds_now.h"

namespace cli {
namespace {

constexpr double kCopySeconds = 2e-3;  // minimum length of a measurement

}  // namespace

CopyLimit::CopyLimit(int64_t bytes, int threads)
    : bytes_(bytes), from_(static_cast<size_t>(threads), std::vector<char>(static_cast<size_t>(bytes), 1)), to_(from_) {}

double CopyLimit::measure() {
  std::vector<double> rates(from_.size());
  const auto copy = [&](size_t thread) {
    const double start = seconds_now();
    int64_t copies = 0;
    for (; copies == 0 || seconds_now() < start + kCopySeconds; ++copies) {
      std::memcpy(to_[thread].data(), from_[thread].data(), static_cast<size_t>(bytes_));
      asm volatile("" ::"r"(to_[thread].data()) : "memory");  // makes the compiler assume that it is read
    }
    rates[thread] = static_cast<double>(copies * bytes_) / (seconds_now() - start);
  };
  std::vector<std::thread> others;
  for (size_t thread = 1; thread < from_.size(); ++thread) others.emplace_back(copy, thread);
  copy(0);
  for (std::thread& other : others) other.join();
  return *std::ranges::min_element(rates);
}

}  // namespace cli
