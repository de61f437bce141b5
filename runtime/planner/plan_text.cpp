#include <array>
#include <cstdio>

#include "base/plain_locale.h"
#include "base/text.h"
#include "planner/plan_answer.h"
#include "planner/textbook.h"

namespace st {
namespace {

template <class... Values>
std::string line(const char* format, Values... values) {
  std::array<char, 300> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return std::string(buffer.data()) + "\n";
}

double giga(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

std::string seconds_text(double seconds) {
  std::array<char, 40> buffer{};
  std::snprintf(buffer.data(), buffer.size(), seconds < 1 ? "%.1f ms" : "%.2f s", seconds < 1 ? seconds * 1e3 : seconds);
  return buffer.data();
}

std::string memory_text(const PlanAnswer& answer) {
  const MemoryUse& use = answer.of_rank.numbers.memory;
  std::string out = "memory, GB\n";
  for (size_t a = 0; a < static_cast<size_t>(Arena::host); ++a) {
    const std::string name(name_of(static_cast<Arena>(a)));
    if (use.device[a] > 0) out += line("  %-12s %10.3f", name.c_str(), giga(use.device[a]));
    if (use.host[a] > 0) out += line("  %-12s %10.3f  in the host's memory", name.c_str(), giga(use.host[a]));
  }
  if (use.reserved > 0) out += line("  %-12s %10.3f  driver, context and libraries", "reserved", giga(use.reserved));
  if (use.file > 0) out += line("  %-12s %10.3f  in a file", "offloaded", giga(use.file));
  const int64_t most = answer.run.device_memory_of_rank(), over = use.device_total() - most;
  out += line("  %-12s %10.3f  of %.3f: %s", "total", giga(use.device_total()), giga(most),
              over <= 0 ? "fits" : text("does not fit, ", text_of_bytes(over), " too much").c_str());
  return out;
}

std::string traffic_text(const RankNumbers& numbers) {
  std::string out;
  for (size_t axis = 0; axis < numbers.traffic.size(); ++axis) {
    const AxisTraffic& traffic = numbers.traffic[axis];
    if (traffic.bytes == 0 && traffic.collectives == 0) continue;
    out += line("  along %-6s %10.3f GB in %lld collectives", std::string(name_of(static_cast<MeshAxis>(axis))).c_str(),
                giga(traffic.bytes), static_cast<long long>(traffic.collectives));
  }
  return out.empty() ? "" : "sends in a step\n" + out;
}

std::string fixes_text(std::span<const Fix> fixes) {
  if (fixes.empty()) return "";
  std::string out = "changes and their prices\n";
  for (const Fix& fix : fixes) out += text("  ", fix.fits ? "fits  " : "      ", fix.text(), "\n");
  return out;
}

std::string simulation_text(const PlanAnswer& answer) {
  if (answer.step == nullptr) return "";
  const SimulatedStep& step = *answer.step;
  const double all = step.seconds(), tokens = answer.run.tokens_per_step();
  std::string out = line("all %lld ranks, simulated", static_cast<long long>(answer.run.recipe.ranks));
  out += line("  a step takes %s; ranks compute nothing in %.1f %% of it; %.0f tokens/s", seconds_text(all).c_str(), 100 * step.idle(),
              all > 0 ? tokens / all : 0);
  const RankClass& fullest = answer.all->fullest();
  out += line("  most memory: %.3f GB on rank %d (stage %d); %s", giga(fullest.numbers.memory.device_total()), fullest.first,
              fullest.at.stage, answer.all->fits() ? "all ranks fit" : "does not fit");
  if (answer.goodput != nullptr)
    out += line("  with failures: %.1f %% of the time makes progress, with a checkpoint every %lld steps", 100 * answer.goodput->share,
                static_cast<long long>(answer.goodput->steps_between_saves));
  return out;
}

}  // namespace

std::string text_of(const PlanAnswer& answer) {
  const PlainLocale locale;
  const PlannedRun& run = answer.run;
  const Mesh mesh = run.mesh();
  const RankNumbers& numbers = answer.of_rank.numbers;
  std::string out = line("rank %d of %lld (%d data x %d tensor x %d stages) on %s", answer.rank, static_cast<long long>(run.recipe.ranks),
                         mesh.data, mesh.tensor, mesh.stage, run.machine.name.c_str());
  out += text(run.machine.is_measured ? "times: measured, " : "times: estimates, ", run.machine.source, "\n\n", memory_text(answer));
  out += textbook(run).text(run) + "\n\n" + traffic_text(numbers);
  const double seconds = answer.of_rank.step_seconds(run.recipe), tokens = run.tokens_per_step();
  out += line("time\n  a step takes %s; the schedule leaves %.1f %% of it idle; %.0f tokens/s on all ranks", seconds_text(seconds).c_str(),
              100 * answer.of_rank.bubble(run.recipe), seconds > 0 ? tokens / seconds : 0);
  out += line("  arithmetic %.3g TFLOP, of which %.1f %% are recomputed; %.3g TFLOP/s", numbers.flops / 1e12,
              numbers.flops > 0 ? 100 * numbers.repeated_flops / numbers.flops : 0, seconds > 0 ? numbers.flops / seconds / 1e12 : 0);
  const std::string simulated = simulation_text(answer), fixes = fixes_text(answer.fixes);
  for (const std::string* part : {&simulated, &fixes})
    if (!part->empty()) out += "\n" + *part;
  return out;
}

}  // namespace st
