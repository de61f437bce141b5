#include "base/machine_profile.h"

#include <limits>
#include <span>

#include "base/error.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "base/json_line.h"

namespace st {
namespace {

constexpr int64_t kVersion = 2, kMostThreads = 4096;
constexpr std::string_view kWriter = "give what `scaletrain info --json` writes as \"machine\"";
constexpr std::string_view kDevices[] = {"cpu", "reference", "cuda"}, kReferenceClasses[] = {"reference"};

std::span<const std::string_view> classes_of(std::string_view device) {
  if (device == "cpu") return kCpuClasses;
  return device == "cuda" ? std::span<const std::string_view>(kCudaClasses) : kReferenceClasses;
}

}  // namespace

std::string MachineProfile::json() const {
  JsonLine all, measured, table;
  measured.add("clock", clock);
  table.add("fp32_flops_per_cycle", fp32_flops_per_cycle).add("bf16_flops_per_cycle", bf16_flops_per_cycle);
  all.add("version", kVersion).add("device", device).add("kernel_class", kernel_class).add("threads", threads);
  all.add("alignment", alignment).add("memory_bytes", memory).add("reserved_bytes", reserved);
  return all.add_json("measured", measured.text()).add_json("table", table.text()).text();
}

MachineProfile parse_machine_profile(std::string_view json) {
  const Json whole = parse_json(json, "machine profile");
  JsonFields all(whole, "machine profile", kWriter);
  const Json& version = all.any("version");
  check(version.as_whole() == kVersion, "machine profile: version must be ", kVersion, ", got ", version.dump(),
        "; write it with `scaletrain info --json` of this version");
  MachineProfile machine;
  machine.device = all.one_of("device", kDevices);
  machine.kernel_class = all.one_of("kernel_class", classes_of(machine.device));
  machine.threads = static_cast<int>(all.whole("threads", 1, kMostThreads));
  machine.alignment = all.whole("alignment", machine.alignment, machine.alignment);
  machine.memory = all.whole("memory_bytes", 0, std::numeric_limits<int64_t>::max());
  machine.reserved = all.whole("reserved_bytes", 0, std::numeric_limits<int64_t>::max());
  JsonFields measured(all.any("measured"), "machine profile: measured", kWriter),
      table(all.any("table"), "machine profile: table", kWriter);
  machine.clock = measured.rate("clock");
  machine.fp32_flops_per_cycle = table.rate("fp32_flops_per_cycle");
  machine.bf16_flops_per_cycle = table.rate("bf16_flops_per_cycle");
  for (const JsonFields* fields : {&all, &measured, &table}) fields->done(kVersion);
  return machine;
}

}  // namespace st
