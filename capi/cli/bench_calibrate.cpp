// scaletrain bench --calibrate FILE: measures this machine's rates for plans, and prints the most telling ones.
#include <algorithm>
#include <cstdio>
#include <string>

#include "bench.h"
#include "new_file.h"
#include "options.h"
#include "seconds_now.h"

namespace cli {
namespace {

constexpr double kSide = 1024, kLargeBytes = 64 << 20;

/// Seconds of an instruction by its rate: linear between the points, beyond the last one at the slope before it. 0: there is no such rate.
double seconds_of(const Json& set, const char* name, double flops, double bytes) {
  const Json& ops = set["ops"];
  const auto found = std::ranges::find_if(ops, [&](const Json& op) { return op["name"] == name; });
  if (found == ops.end()) return 0;
  double seconds = 0;
  const Json& points = (*found)["seconds_by_bytes"];
  for (size_t i = 0; i < points.size(); ++i) {
    const double at = points[i][0], took = points[i][1];
    if (i > 0 && (bytes > points[i - 1][0].get<double>())) {
      const double before = points[i - 1][0], took_before = points[i - 1][1];
      seconds = took_before + (took - took_before) / (at - before) * (bytes - before);
    } else if (i == 0) {
      seconds = took;
    }
  }
  return seconds + (*found)["seconds_per_flop"].get<double>() * flops;
}

void print_rates(const Json& set) {
  const double flops = 2 * kSide * kSide * kSide;
  const auto product = [&](const char* name, double width) {
    const double took = seconds_of(set, name, flops, 3 * width * kSide * kSide);
    return took > 0 ? flops / took / 1e9 : 0;
  };
  const auto moved = [&](const char* name, double bytes) {
    const double took = seconds_of(set, name, 0, bytes);
    return took > 0 ? bytes / took / 1e9 : 0;
  };
  const int64_t memory = set["memory_bytes"].get<int64_t>();
  const std::string plans = memory == 0 ? "larger" : "to " + std::to_string(memory >> 20);
  std::printf("%5d %8d %11s %13.0f %12.0f %12.1f", set["ranks"].get<int>(), set["threads"].get<int>(), plans.c_str(),
              product("products.f32", 4), product("products.bf16", 2), moved("memory", kLargeBytes));
  if (const double latency = seconds_of(set, "exchange.data", 0, 0); moved("exchange.data", kLargeBytes) > 0)
    std::printf(" %11.1f us %9.1f", latency * 1e6, moved("exchange.data", kLargeBytes));
  std::printf("\n");
}

}  // namespace

void bench_calibrate(const BenchOptions& options, int64_t threads) {
  const std::string usual = options.quick ? kQuickSeconds : kCalibrateSeconds;
  const double seconds = real_number("--seconds", options.seconds.empty() ? usual : options.seconds);
  if (!(seconds >= 0 && seconds <= 600)) refuse("--seconds is ", options.seconds, "; give 0 to 600");
  { const NewFile is_writable(options.calibrate); }  // before anything is measured
  st_context_options settings;
  ask(st_context_options_init(&settings, sizeof settings));
  settings.threads = static_cast<int32_t>(threads);
  const Context context = make<Context>(st_context_create, &settings);
  const Json how = {{"seconds", seconds}, {"quick", options.quick}};
  const double began = seconds_now();
  const std::string machine = text(st_machine_calibrate, context.get(), how.dump().c_str());
  const double took = seconds_now() - began;
  NewFile file(options.calibrate);
  file.add(machine);
  file.add("\n");
  file.finish();
  if (options.json) {
    std::printf("%s\n", machine.c_str());
    return;
  }
  const Json read = Json::parse(machine);
  std::printf("measured %s, in %.1f s; written to %s\n", read["source"].get<std::string>().c_str(), took, options.calibrate.c_str());
  std::printf("ranks  threads  plans, MiB  fp32 GFLOP/s bf16 GFLOP/s  memory GB/s     exchange latency  exchange GB/s\n");
  for (const Json& set : read["rates"]) print_rates(set);
  std::printf("products of %.0f x %.0f x %.0f; memory and exchanges of %.0f MiB; of each rank\n", kSide, kSide, kSide,
              kLargeBytes / (1 << 20));
}

}  // namespace cli
