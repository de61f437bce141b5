#include "collective_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "quantiles.h"
#include "seconds_now.h"

namespace cli {
namespace {

/// Small whole numbers times 2^-60: their sums are exact and have room to grow.
float drawn(uint64_t seed, int rank, int64_t element) {
  uint64_t x = seed * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(rank) * 0xD1B54A32D192ED03U + static_cast<uint64_t>(element);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return static_cast<float>((x >> 40 & 1023) + 1) * 0x1p-60F;
}

class CollectiveProbe {
 public:
  explicit CollectiveProbe(CollectiveCalls& calls) : calls_(calls) {}

  CallTimes measure(Exchange exchange, int64_t elements, int64_t count, uint64_t seed) {
    exchange_ = exchange;
    elements_ = elements;
    begin_ = calls_.share_begin(elements, calls_.rank());
    end_ = calls_.share_begin(elements, calls_.rank() + 1);
    // Each in-place all_reduce multiplies the values by the number of ranks: draw new ones before f32 overflows.
    const int64_t most = exchange == Exchange::all_reduce ? 150 / std::bit_width(static_cast<unsigned>(calls_.size())) : count + 1;
    std::vector<double> seconds;
    for (int64_t left = count; left > 0; ++seed) {
      draw(seed);
      call();  // not timed: brings the ranks together
      const int64_t timed = std::min(left, most - 1);
      for (int64_t i = 0; i < timed; ++i) {
        const double start = seconds_now();
        call();
        seconds.push_back(seconds_now() - start);
      }
      check(seed, timed + 1);
      left -= timed;
    }
    return {quantile(seconds, 0.5), quantile(seconds, 0.1), quantile(seconds, 0.9)};
  }

 private:
  void draw(uint64_t seed) {
    const bool gathers = exchange_ == Exchange::all_gather;
    const int64_t first = gathers ? begin_ : 0, last = gathers ? end_ : elements_;
    from_.resize(static_cast<size_t>(last - first));
    for (int64_t i = first; i < last; ++i) from_[static_cast<size_t>(i - first)] = drawn(seed, calls_.rank(), i);
    const int64_t results = exchange_ == Exchange::all_reduce ? 0 : gathers ? elements_ : end_ - begin_;
    to_.assign(static_cast<size_t>(results), std::numeric_limits<float>::quiet_NaN());
  }

  void call() {
    if (exchange_ == Exchange::all_reduce) return calls_.all_reduce(from_.data(), elements_);
    if (exchange_ == Exchange::reduce_scatter) return calls_.reduce_scatter(from_.data(), to_.data(), elements_);
    calls_.all_gather(from_.data(), to_.data(), elements_);
  }

  double sum_of(uint64_t seed, int64_t element) const {
    double sum = 0;
    for (int rank = 0; rank < calls_.size(); ++rank) sum += drawn(seed, rank, element);
    return sum;
  }

  /// Tolerance: each call after the first multiplies by the number of ranks and may round, in an order that the caller chooses.
  void check(uint64_t seed, int64_t count) const {
    const bool is_whole = exchange_ != Exchange::reduce_scatter;
    const std::vector<float>& results = exchange_ == Exchange::all_reduce ? from_ : to_;
    const double growth = exchange_ == Exchange::all_reduce ? std::pow(calls_.size(), static_cast<double>(count - 1)) : 1;
    int owner = 0;
    for (int64_t i = 0; i < std::ssize(results); ++i) {
      const int64_t element = is_whole ? i : begin_ + i;
      while (calls_.share_begin(elements_, owner + 1) <= element) ++owner;
      const double expected = exchange_ == Exchange::all_gather ? drawn(seed, owner, element) : sum_of(seed, element) * growth;
      const double found = results[static_cast<size_t>(i)];
      if (std::abs(found - expected) <= 1e-5 * expected) continue;
      char words[160];
      std::snprintf(words, sizeof words, "a wrong result: element %lld of %lld is %g, it should be %g", static_cast<long long>(element),
                    static_cast<long long>(elements_), found, expected);
      throw std::runtime_error(words);
    }
  }

  CollectiveCalls& calls_;
  Exchange exchange_ = Exchange::all_reduce;
  int64_t elements_ = 0, begin_ = 0, end_ = 0;
  std::vector<float> from_, to_;
};

/// The answer to an order, without the rank.
std::string answer(CollectiveProbe& probe, const CollectiveCalls& calls, const std::string& order) {
  std::istringstream words(order);
  std::string name;
  int64_t elements = 0, count = 0;
  uint64_t seed = 0;
  words >> name >> elements >> count >> seed;
  const auto* const exchange = std::ranges::find(kExchanges, name);
  if (!words || exchange == std::end(kExchanges) || elements < 1 || count < 1) throw std::runtime_error("no order: " + order);
  const auto what = static_cast<Exchange>(exchange - std::begin(kExchanges));
  if (!calls.has(what)) return "none";
  const CallTimes times = probe.measure(what, elements, count, seed);
  char text[100];
  std::snprintf(text, sizeof text, "times %.9g %.9g %.9g", times.median, times.p10, times.p90);
  return text;
}

}  // namespace

std::string order_pipe(const std::string& folder, int rank) { return folder + "/order." + std::to_string(rank); }
std::string answer_pipe(const std::string& folder) { return folder + "/answers"; }

void serve_collectives(CollectiveCalls& calls, const std::string& folder) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> orders(std::fopen(order_pipe(folder, calls.rank()).c_str(), "re"));
  const int answers = open(answer_pipe(folder).c_str(), O_WRONLY | O_CLOEXEC);
  if (!orders || answers < 0) throw std::runtime_error("cannot open the pipes in " + folder);
  const auto send = [&](const std::string& words) {
    const std::string line = std::to_string(calls.rank()) + " " + words.substr(0, 1000) + "\n";  // short enough for one atomic write
    return ::write(answers, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  };
  CollectiveProbe probe(calls);
  char line[200];
  try {
    while (std::fgets(line, sizeof line, orders.get()) != nullptr)
      if (!send(answer(probe, calls, std::string(line, std::strcspn(line, "\n"))))) break;
  } catch (const std::exception& error) {
    send(std::string("error ") + error.what());
  }
  close(answers);
}

}  // namespace cli
