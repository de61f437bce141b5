// What st_optimizer_keep_copies saves: an AdamW step that leaves bf16 copies of its parameters, beside the same step and a cast behind it,
// in turn, over one array of each size. Prints medians and the 10th to 90th percentile of the ratio.
#include <scaletrain/scaletrain.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 15;

bool failed(st_status status) {
  if (status != ST_OK) std::fprintf(stderr, "%s\n", st_last_error());
  return status != ST_OK;
}

/// Milliseconds of call().
template <class Call>
double timed(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

/// The cast that a host would write: round to nearest even, of numbers that are finite. It is vectorised.
void cast(const std::vector<float>& from, std::vector<uint16_t>& to) {
  for (size_t i = 0; i < from.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(from[i]);
    to[i] = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
}

bool measure(st_context* context, int64_t elements, int threads) {
  std::vector<float> weight(static_cast<size_t>(elements), 1), gradient(weight.size(), 0.01F);
  std::vector<uint16_t> copy(weight.size());
  const int64_t dims[] = {elements};
  const st_named_view parameter = {"w", {ST_F32, 1, dims, nullptr, weight.data(), elements * 4}};
  const st_view gradients[] = {{ST_F32, 1, dims, nullptr, gradient.data(), elements * 4}};
  const st_view copies[] = {{ST_BF16, 1, dims, nullptr, copy.data(), elements * 2}};
  const std::string json = R"({"clip": 1, "threads": )" + std::to_string(threads) + "}";
  st_optimizer* optimizer = nullptr;
  if (failed(st_optimizer_create(context, json.c_str(), 1, &parameter, &optimizer))) return false;
  std::vector<double> plain, casts, with, ratios;
  bool works = true;
  const auto step = [&] { works = works && !failed(st_optimizer_step(optimizer, 1, gradients, nullptr)); };
  for (int round = 0; round < kRounds; ++round) {
    works = works && !failed(st_optimizer_keep_copies(optimizer, 0, nullptr));
    step();
    plain.push_back(timed(step));
    casts.push_back(timed([&] { cast(weight, copy); }));
    works = works && !failed(st_optimizer_keep_copies(optimizer, 1, copies));
    step();
    with.push_back(timed(step));
    ratios.push_back((plain.back() + casts.back()) / with.back());
  }
  st_optimizer_destroy(optimizer);
  std::printf(
      "%3.0f M parameters, %d threads: step %.2f ms, cast %.2f ms, step with copies %.2f ms; step and cast / it %.2f (%.2f to %.2f)\n",
      static_cast<double>(elements) / 1e6, threads, at(plain, 0.5), at(casts, 0.5), at(with, 0.5), at(ratios, 0.5), at(ratios, 0.1),
      at(ratios, 0.9));
  return works;
}

}  // namespace

int main() {
  st_context* context = nullptr;
  if (failed(st_context_create(nullptr, &context))) return 1;
  bool works = true;
  for (const int threads : {1, 2})
    for (const int64_t millions : {1, 12, 40}) works = works && measure(context, millions * 1'000'000, threads);
  st_context_destroy(context);
  return works ? 0 : 1;
}
