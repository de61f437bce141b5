#include <array>
#include <cstdio>

#include "base/plain_locale.h"
#include "base/text.h"
#include "planner/blueprint.h"
#include "planner/textbook.h"

namespace st {
namespace {

template <class... Values>
std::string printed(const char* format, Values... values) {
  std::array<char, 300> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

template <class... Values>
std::string line(const char* format, Values... values) {
  return printed(format, values...) + "\n";
}

double giga(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

/// GB, or MB for small models.
struct Unit {
  const char* name;
  double bytes;
  double of(int64_t count) const { return static_cast<double>(count) / bytes; }
};
Unit unit_for(int64_t bytes) { return bytes < 1'000'000'000 ? Unit{"MB", 1e6} : Unit{"GB", 1e9}; }

std::string seconds_text(double seconds) { return seconds < 1 ? printed("%.1f ms", seconds * 1e3) : printed("%.2f s", seconds); }

std::string hours_text(double seconds) {
  constexpr double kHour = 3600, kDay = 24 * kHour;
  return seconds < 2 * kDay ? printed("%.2f hours", seconds / kHour) : printed("%.1f days", seconds / kDay);
}

std::string memory_text(const PlannedMemory& use, std::span<const PlannedStage> stages, int64_t most) {
  const Unit unit = unit_for(use.device_total() - use.reserved);
  std::string out = text("memory, ", unit.name, "\n");
  for (size_t a = 0; a < static_cast<size_t>(Arena::host); ++a) {
    const std::string name(name_of(static_cast<Arena>(a)));
    if (use.device[a] > 0) out += line("  %-12s %10.3f", name.c_str(), unit.of(use.device[a]));
    if (use.host[a] > 0) out += line("  %-12s %10.3f  in the host's memory", name.c_str(), unit.of(use.host[a]));
  }
  if (use.inputs > 0) out += line("  %-12s %10.3f  the rows of a micro-batch", "inputs", unit.of(use.inputs));
  if (use.terms > 0) out += line("  %-12s %10.3f  terms of sums over ranks", "terms", unit.of(use.terms));
  if (use.recordings > 0) out += line("  %-12s %10.3f  graphs of recorded kernels (an estimate)", "recordings", unit.of(use.recordings));
  const std::string network = use.network > 0 ? text(", of which NCCL's buffers ", text_of_bytes(use.network), " (an estimate)") : "";
  if (use.reserved > 0) out += line("  %-12s %10.3f  driver, context and libraries%s", "reserved", unit.of(use.reserved), network.c_str());
  if (use.file > 0) out += line("  %-12s %10.3f  in a file", "offloaded", unit.of(use.file));
  const auto verdict = [&](int64_t total, const char* fits) {
    if (total <= most) return std::string(fits);
    const int64_t over = total - most;
    const bool is_small = static_cast<double>(over) < unit.bytes / 1000;
    return text("does not fit, ", is_small ? text_of_bytes(over) : printed("%.3f %s", unit.of(over), unit.name), " too much");
  };
  out +=
      line("  %-12s %10.3f  of %.3f: %s", "total", unit.of(use.device_total()), unit.of(most), verdict(use.device_total(), "fits").c_str());
  if (stages.size() < 2) return out;
  const PlannedStage& full = fullest(stages);
  const int64_t total = full.memory.device_total();
  return out + line("  %-12s %10.3f  stage %d of %zu, rank %d: %s", "fullest", unit.of(total), full.stage, stages.size(), full.rank,
                    verdict(total, "all stages fit").c_str());
}

std::string traffic_text(const RankNumbers& numbers) {
  std::string out;
  for (size_t axis = 0; axis < numbers.traffic.size(); ++axis) {
    const AxisTraffic& traffic = numbers.traffic[axis];
    if (traffic.bytes == 0 && traffic.collectives == 0) continue;
    const Unit unit = unit_for(traffic.bytes);
    out += line("  along %-6s %10.3f %s in %lld collectives", std::string(name_of(static_cast<MeshAxis>(axis))).c_str(),
                unit.of(traffic.bytes), unit.name, static_cast<long long>(traffic.collectives));
    if (traffic.nodes == 1) continue;
    out.pop_back();
    out += line(", over %lld nodes", static_cast<long long>(traffic.nodes));
    const auto by_link = [&](const char* name, const LinkBytes& of) {
      out += line("    %-8s %10.3f %s in the node, %.3f %s between nodes", name, unit.of(of.in_node), unit.name, unit.of(of.between_nodes),
                  unit.name);
    };
    by_link("direct", traffic.direct);
    by_link("native", traffic.native);
  }
  return out.empty() ? "" : "sends in a step\n" + out;
}

std::string fixes_text(std::span<const Fix> fixes, const std::string& of_rank) {
  if (fixes.empty()) return "";
  std::string out = text("changes and their prices", of_rank, "\n");
  for (const Fix& fix : fixes) out += text("  ", fix.fits ? "fits  " : "      ", fix.text(), "\n");
  return out;
}

/// The step's time by its uses, and the links that limit it.
std::string shares_text(const PlannedRun& run, const StepShares& of) {
  const double all = of.all();
  if (all <= 0) return "";
  std::string out = line("  computing %.1f %%", 100 * of.computing / all);
  out.pop_back();
  for (int32_t axis = 0; axis < kMeshAxes; ++axis) {
    const double seconds = of.exchange[static_cast<size_t>(axis)];
    if (seconds <= 0.0005 * all) continue;
    const LinkRate link = link_of_group(run.machine, run.mesh(), static_cast<MeshAxis>(axis), run.placement());
    out += line(", waits for exchange along %s %.1f %% (a link of %.3g GB/s a rank)",
                std::string(name_of(static_cast<MeshAxis>(axis))).c_str(), 100 * seconds / all, link.bytes_per_second / 1e9);
    out.pop_back();
  }
  if (of.bubble > 0) out += line(", bubble %.1f %%", 100 * of.bubble / all), out.pop_back();
  return out + "\n";
}

std::string speedup_text(const PlannedRun& run, double on_one_rank, double seconds) {
  return on_one_rank > 0 && seconds > 0 ? line("  %.2f times the speed of one rank; with %lld ranks at most %lld", on_one_rank / seconds,
                                               static_cast<long long>(run.recipe.ranks), static_cast<long long>(run.recipe.ranks))
                                        : "";
}

std::string limit_text(const SpeedLimit& limit, double on_one_rank, double seconds, double own_seconds) {
  const std::string limited = "  limited by " + limit.name();
  if (limit.is_bubble) return limited + line(": %.1f %% of the step", 100 * limit.share);
  const std::string of_step =
      printed(", %.3g GB/s a rank: %.1f %% of the step is waits for exchange along ", limit.bytes_per_second / 1e9, 100 * limit.share);
  const double at_twice = limit.seconds_at_twice / own_seconds;  // of the step's time
  const std::string faster =
      at_twice < 0.99 ? printed("; with twice their rate %.2f times the speed of one rank", on_one_rank / (seconds * at_twice)) : "";
  return text(limited, of_step, name_of(limit.axis), faster, '\n');
}

std::string found_text(const SearchResult& found, const PlannedRun& run) {
  if (found.best.empty()) return "";
  const bool fits = found.best.front().fits;
  return st::text(fits ? "searched: fastest first of what fits" : "searched: nothing fits; nearest first", ", ", found.planned, " plans\n",
                  found.text(run));
}

std::string simulation_text(const RunPlan& all, const SimulatedStep& step) {
  const double seconds = step.seconds(), tokens = all.run().tokens_per_step();
  std::string out = line("all %lld ranks, simulated", static_cast<long long>(all.run().recipe.ranks));
  out += line("  a step takes %s; ranks compute nothing in %.1f %% of it; %.0f tokens/s", seconds_text(seconds).c_str(), 100 * step.idle(),
              seconds > 0 ? tokens / seconds : 0);
  const RankClass& fullest = all.fullest();
  return out + line("  most memory: %.3f GB on rank %d (stage %d); %s", giga(fullest.numbers.memory.device_total()), fullest.first,
                    fullest.at.stage, all.fits() ? "all ranks fit" : "does not fit");
}

std::string goodput_text(const Goodput& of) {
  const auto percent = [&](double seconds) { return of.seconds > 0 ? 100 * seconds / of.seconds : 0; };
  std::string out = "the run with lost nodes, simulated\n";
  out += line("  %.1f %% of the time makes progress that lasts, with a checkpoint every %lld steps", 100 * of.share,
              static_cast<long long>(of.steps_between_saves));
  out += line("  %.1f %% makes steps again, %.1f %% restarts, %.1f %% saves", percent(of.repeating), percent(of.restarting),
              percent(of.saving));
  return out + line("  %lld steps in %s; nodes lost: %lld, steps made again: %lld, checkpoints: %lld%s", static_cast<long long>(of.steps),
                    hours_text(of.seconds).c_str(), static_cast<long long>(of.lost_nodes), static_cast<long long>(of.lost_steps),
                    static_cast<long long>(of.saves), of.ends ? "" : "; given up, nodes are lost too often");
}

}  // namespace

std::string Blueprint::text() const {
  const PlainLocale locale;
  const Mesh mesh = run_.mesh();
  const RankNumbers& numbers = of_rank_.numbers;
  const std::string found = found_text(found_, run_);
  std::string out = found.empty() ? "" : found + "\n";
  out += line("rank %d of %lld (%d data x %d tensor x %d stages) on %s", rank_, static_cast<long long>(run_.recipe.ranks), mesh.data,
              mesh.tensor, mesh.stage, run_.machine.name.c_str());
  out += st::text(run_.machine.is_measured ? "times: measured, " : "times: estimates, ", run_.machine.source, "\n\n",
                  memory_text(numbers.memory, stages_, run_.device_memory_of_rank()));
  out += textbook(run_).text(run_) + "\n\n" + traffic_text(numbers);
  const double seconds = shares_.all(), tokens = run_.tokens_per_step();
  out += line("time\n  a step takes %s; %.0f tokens/s on all ranks", seconds_text(seconds).c_str(), seconds > 0 ? tokens / seconds : 0);
  out += line("  arithmetic %.3g TFLOP, of which %.1f %% are recomputed; %.3g TFLOP/s", numbers.flops / 1e12,
              numbers.flops > 0 ? 100 * numbers.repeated_flops / numbers.flops : 0, seconds > 0 ? numbers.flops / seconds / 1e12 : 0);
  const double of_all = step_ ? step_->seconds() : seconds;
  out += shares_text(run_, shares_) + speedup_text(run_, on_one_rank_, of_all);
  if (limit_) out += limit_text(*limit_, on_one_rank_, of_all, seconds);
  if (step_) out += "\n" + simulation_text(*all_, *step_);
  if (goodput_) out += "\n" + goodput_text(*goodput_);
  const std::string fixes = fixes_text(fixes_, advised_ == rank_ ? "" : st::text(" on rank ", advised_));
  return fixes.empty() ? out : out + "\n" + fixes;
}

}  // namespace st
