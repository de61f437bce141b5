// The gain of st_optimizer_keep_copies: an AdamW step that writes bf16 copies of its parameters, compared with the same step followed by a
// cast, in turn, over one array of each size. Prints medians and the 10th to 90th percentile of the ratio.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "samples.h"

namespace {

using bench::hold;
using bench::quantile;

constexpr int kRounds = 15;

/// Milliseconds of call().
template <class Call>
double timed(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// The cast that a host would write: round to nearest even, for finite numbers. It is vectorised.
void cast(const std::vector<float>& from, std::vector<uint16_t>& to) {
  for (size_t i = 0; i < from.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(from[i]);
    to[i] = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
}

void measure(st_context* context, int64_t elements, int threads) {
  std::vector<float> weight(static_cast<size_t>(elements), 1), gradient(weight.size(), 0.01F);
  std::vector<uint16_t> copy(weight.size());
  const int64_t dims[] = {elements};
  const st_named_view parameter = {"w", {ST_F32, 1, dims, nullptr, weight.data(), elements * 4}};
  const st_view gradients[] = {{ST_F32, 1, dims, nullptr, gradient.data(), elements * 4}};
  const st_view copies[] = {{ST_BF16, 1, dims, nullptr, copy.data(), elements * 2}};
  const std::string json = R"({"clip": 1, "threads": )" + std::to_string(threads) + "}";
  st_optimizer* optimizer = nullptr;
  hold(st_optimizer_create(context, json.c_str(), 1, &parameter, &optimizer));
  std::vector<double> plain, casts, with, ratios;
  const auto step = [&] { hold(st_optimizer_step(optimizer, 1, gradients, nullptr)); };
  for (int round = 0; round < kRounds; ++round) {
    hold(st_optimizer_keep_copies(optimizer, 0, nullptr));
    step();
    plain.push_back(timed(step));
    casts.push_back(timed([&] { cast(weight, copy); }));
    hold(st_optimizer_keep_copies(optimizer, 1, copies));
    step();
    with.push_back(timed(step));
    ratios.push_back((plain.back() + casts.back()) / with.back());
  }
  st_optimizer_destroy(optimizer);
  std::printf(
      "%3.0f M parameters, %d threads: step %.2f ms, cast %.2f ms, step with copies %.2f ms; step and cast / it %.2f (%.2f to %.2f)\n",
      static_cast<double>(elements) / 1e6, threads, quantile(plain, 0.5), quantile(casts, 0.5), quantile(with, 0.5), quantile(ratios, 0.5),
      quantile(ratios, 0.1), quantile(ratios, 0.9));
}

}  // namespace

int main() {
  st_context* context = nullptr;
  hold(st_context_create(nullptr, &context));
  for (const int threads : {1, 2})
    for (const int64_t millions : {1, 12, 40}) measure(context, millions * 1'000'000, threads);
  st_context_destroy(context);
  return 0;
}
