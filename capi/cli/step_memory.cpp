#include "step_memory.h"

#include <sys/resource.h>

#include <cmath>
#include <cstdio>

#include "own_step.h"

namespace cli {
namespace {

constexpr int64_t kContexts[] = {512, 1024, 2048, 4096};  // ascending, since a process's peak never falls
constexpr Shape kModel = {6, 384, 6, 0, 1, 4096};

/// Peak of this process since it started.
int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

/// The planned memory that grows with the tokens: what a step writes and reads again.
int64_t of_tokens(const Json& memory) {
  return memory["activations"].get<int64_t>() + memory["stash"].get<int64_t>() + memory["workspace"].get<int64_t>();
}

Json row_of(const Context& context, int64_t length) {
  Shape shape = kModel;
  shape.context = length;
  OwnStep own(context, shape, draw_tokens(shape, 1));
  const double loss = own.step().check;
  if (!std::isfinite(loss)) throw Failure(kFailed, "bench: the loss of " + name_of(shape) + " is not finite");
  const Json memory = own.planned_memory();
  st_memory_stats stats;
  ask(st_memory_stats_init(&stats, sizeof stats));
  ask(st_context_memory(context.get(), &stats));
  return {{"name", name_of(shape)},
          {"context", length},
          {"loss", loss},
          {"activation_bytes", of_tokens(memory)},
          {"bytes_per_token", static_cast<double>(of_tokens(memory)) / static_cast<double>(length)},
          {"planned_bytes", memory["device_total"]},
          {"allocated_bytes", stats.allocated_bytes},
          {"peak_resident_bytes", peak_resident_bytes()}};
}

void print_memory(const Json& row) {
  const auto mebibytes = [&row](const char* key) { return row[key].get<double>() / (1 << 20); };
  std::printf("%s\n  activations       %9.1f MiB  %.1f KiB a token\n  planned           %9.1f MiB\n  resident, peak    %9.1f MiB\n",
              row["name"].get<std::string>().c_str(), mebibytes("activation_bytes"), row["bytes_per_token"].get<double>() / 1024,
              mebibytes("planned_bytes"), mebibytes("peak_resident_bytes"));
  std::fflush(stdout);
}

}  // namespace

void measure_step_memory(int64_t threads, bool json) {
  st_context_options options;
  ask(st_context_options_init(&options, sizeof options));
  options.threads = static_cast<int32_t>(threads);
  const Context context = make<Context>(st_context_create, &options);
  Json rows = Json::array();
  for (const int64_t length : kContexts) {
    rows.push_back(row_of(context, length));
    if (!json) print_memory(rows.back());
  }
  if (!json) return;
  const Json none = Json::object();
  const Json result = {{"bench", "step"}, {"rows", Json::array()}, {"geomean", none}, {"absent", none}, {"memory", rows}};
  std::printf("%s\n", result.dump().c_str());
}

}  // namespace cli
