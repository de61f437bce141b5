#include <array>
#include <cstdio>
#include <map>

#include "base/plain_locale.h"
#include "ir/print.h"
#include "plan/kernel_segments.h"
#include "plan/ordering.h"
#include "plan/plan.h"

namespace st {
namespace {

template <class... Values>
std::string line(const char* format, Values... values) {
  const PlainLocale locale;
  std::array<char, 200> buffer;
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return std::string(buffer.data()) + "\n";
}

std::string explain_memory(const MemoryLayout& memory) {
  std::string out = "memory\n";
  for (int32_t a = 0; a < kArenas; ++a)
    if (const int64_t bytes = memory.bytes[static_cast<size_t>(a)]; bytes > 0)
      out += line("  %-12s %14lld  %s", std::string(name_of(static_cast<Arena>(a))).c_str(), static_cast<long long>(bytes),
                  text_of_bytes(bytes).c_str());
  out += line("  %-12s %14lld  %s", "total", static_cast<long long>(memory.total()), text_of_bytes(memory.total()).c_str());
  if (const int64_t file = memory.file_bytes(); file > 0)
    out += line("  %-12s %14lld  %s of the total, not memory", "in a file", static_cast<long long>(file), text_of_bytes(file).c_str());
  if (const int64_t host = memory.host_bytes(); host > 0)
    out += line("  %-12s %14lld  %s of the total, in the host's memory", "on the host", static_cast<long long>(host),
                text_of_bytes(host).c_str());
  const int64_t shared = memory.of(Arena::activations) + memory.of(Arena::stash) + memory.of(Arena::workspace);
  out += line("  activations, stash and workspace take %.1f %% of what they would without sharing memory",
              memory.no_reuse_bytes > 0 ? 100.0 * static_cast<double>(shared) / static_cast<double>(memory.no_reuse_bytes) : 0.0);
  return out;
}

std::string explain_recompute(const RecomputeRecord& record) {
  if (record.scopes.empty()) return "";
  std::string out = "recompute: bytes saved in the stash, work repeated in each micro-batch\n";
  const auto row = [&out](const std::string& name, int64_t bytes, const OpCost& cost) {
    out += line("  %-24s %14lld  %10.4f GFLOP %14.0f bytes of other ops", name.c_str(), static_cast<long long>(bytes), cost.flops / 1e9,
                cost.bytes);
  };
  for (const RecomputedScope& scope : record.scopes) row(scope.name, scope.stash_bytes, scope.cost);
  row("total", record.stash_before - record.stash_after, record.cost());
  return out + text("  stash ", record.stash_before, " bytes before, ", record.stash_after, " after\n\n");
}

}  // namespace

std::string explain(const Plan& plan) {
  std::string out = "passes\n";
  for (const PassRecord& pass : plan.passes)
    out += line("  %-16s %8.3f ms  %6d nodes%s", pass.name.c_str(), pass.seconds * 1e3, pass.nodes, pass.skipped ? "  skipped" : "");
  out += "\n" + print(plan.program) + "\n" + explain_memory(plan.memory) + "\n" + explain_recompute(plan.recompute);

  std::map<std::string_view, int64_t> counts;
  for (const Instruction& i : plan.instructions)
    ++counts[i.is_copy() ? "copies and their waits" : name_of(plan.program.sections[static_cast<size_t>(i.section)].graph[i.node].op)];
  out += text("instructions ", plan.instructions.size(), " in ", plan.micro_batches, " micro-batches\n");
  for (const auto& [op, count] : counts) out += line("  %-24s %6lld", std::string(op).c_str(), static_cast<long long>(count));
  for (const auto& [library, count] : products_by_library(plan.program))
    if (library != "own") out += text("products by ", library, ": ", count, "\n");
  return out + print_ordering(plan) + print_segments(plan) + "\n" + print_instructions(plan);
}

}  // namespace st
