#include "base/machine_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/json_line.h"

namespace st {
namespace {

constexpr int64_t kVersion = 1, kMostThreads = 4096;
constexpr std::string_view kDevices[] = {"cpu", "reference"}, kReferenceClasses[] = {"reference"};

/// The members of an object; done() refuses those that nobody has read.
class Fields {
 public:
  Fields(const Json& object, std::string name) : object_(object), name_(std::move(name)) {
    check(object.is(Json::Kind::object), name_, " must be a JSON object, got ", object.dump());
  }

  const Json& any(std::string_view key) {
    const Json* found = object_.find(key);
    check(found != nullptr, name_, ": ", key, " is missing; give what `scaletrain info --json` writes as \"machine\"");
    read_.push_back(key);
    return *found;
  }
  int64_t whole(std::string_view key, int64_t least, int64_t most) {
    const Json& value = any(key);
    const auto read = value.as_whole();
    check(read && *read >= least && *read <= most, name_, ": ", key, " must be a whole number in [", least, ", ", most, "], got ",
          value.dump());
    return *read;
  }
  double rate(std::string_view key) {
    const Json& value = any(key);
    check(value.is_number() && value.number() >= 0 && std::isfinite(value.number()), name_, ": ", key,
          " must be a number of at least 0 (0: unknown), got ", value.dump());
    return value.number();
  }
  std::string one_of(std::string_view key, std::span<const std::string_view> allowed) {
    const Json& value = any(key);
    const std::vector<std::string> names(allowed.begin(), allowed.end());
    check(value.is(Json::Kind::text) && std::ranges::find(allowed, value.text()) != allowed.end(), name_, ": ", key, " must be one of ",
          listed(names), ", got ", value.dump(), way_out(value.text(), names));
    return value.text();
  }
  void done() const {
    for (const auto& [key, value] : object_.members())
      check(std::ranges::find(read_, key) != read_.end(), name_, ": version ", kVersion, " has no ", key, "; remove it");
  }

 private:
  const Json& object_;
  std::string name_;
  std::vector<std::string_view> read_;
};

}  // namespace

std::string MachineProfile::json() const {
  JsonLine all, measured, table;
  measured.add("clock", clock);
  table.add("fp32_flops_per_cycle", fp32_flops_per_cycle).add("bf16_flops_per_cycle", bf16_flops_per_cycle);
  all.add("version", kVersion).add("device", device).add("kernel_class", kernel_class).add("threads", threads);
  all.add("alignment", alignment).add("memory_bytes", memory);
  return all.add_json("measured", measured.text()).add_json("table", table.text()).text();
}

MachineProfile parse_machine_profile(std::string_view json) {
  const Json whole = parse_json(json, "machine profile");
  Fields all(whole, "machine profile");
  const Json& version = all.any("version");
  check(version.as_whole() == kVersion, "machine profile: version must be ", kVersion, ", got ", version.dump(),
        "; write it with `scaletrain info --json` of this version");
  MachineProfile machine;
  machine.device = all.one_of("device", kDevices);
  const bool is_cpu = machine.device == "cpu";
  machine.kernel_class = all.one_of("kernel_class", is_cpu ? std::span<const std::string_view>(kCpuClasses) : kReferenceClasses);
  machine.threads = static_cast<int>(all.whole("threads", 1, kMostThreads));
  machine.alignment = all.whole("alignment", machine.alignment, machine.alignment);
  machine.memory = all.whole("memory_bytes", 0, std::numeric_limits<int64_t>::max());
  Fields measured(all.any("measured"), "machine profile: measured"), table(all.any("table"), "machine profile: table");
  machine.clock = measured.rate("clock");
  machine.fp32_flops_per_cycle = table.rate("fp32_flops_per_cycle");
  machine.bf16_flops_per_cycle = table.rate("bf16_flops_per_cycle");
  for (const Fields* fields : {&all, &measured, &table}) fields->done();
  return machine;
}

}  // namespace st
