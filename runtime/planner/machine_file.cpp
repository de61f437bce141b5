// Machines as JSON: a calibration is kept in a file, and planned for where the machine is not.
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/json_line.h"
#include "planner/target_machine.h"

namespace st {
namespace {

constexpr int64_t kVersion = 2, kMost = std::numeric_limits<int64_t>::max(), kMostRanks = 1 << 20;
constexpr std::string_view kWriter = "give a file that `scaletrain bench --calibrate FILE` of this version wrote";

std::string json_of(const LinkRate& link) {
  JsonLine line;
  return line.add("latency", link.latency).add("bytes_per_second", link.bytes_per_second).text();
}

std::string json_of(const OpRate& rate) {
  JsonLine line;
  std::vector<std::string> points;
  for (const OpRate::Point& point : rate.by_bytes) {
    std::string pair = "[";
    append_json_number(pair, point.bytes);
    pair += ',';
    append_json_number(pair, point.seconds);
    points.push_back(pair + ']');
  }
  return line.add("name", rate.name)
      .add("seconds_per_flop", rate.per_flop)
      .add("seconds_per_activation", rate.per_activation)
      .add_json("seconds_by_bytes", json_list(points))
      .text();
}

std::string json_of(const RateSet& set) {
  JsonLine line;
  std::vector<std::string> ops;
  for (const OpRate& rate : set.ops) ops.push_back(json_of(rate));
  line.add("threads", set.threads).add("ranks", set.ranks).add("step_seconds", set.step);
  line.add("memory_bytes", set.memory == RateSet::kAnyMemory ? 0 : set.memory);
  return line.add_json("ops", json_list(ops)).text();
}

LinkRate read_link(JsonFields& all, const char* key) {
  JsonFields fields(all.any(key), text("machine: ", key), kWriter);
  const LinkRate link{fields.rate("latency"), fields.rate("bytes_per_second")};
  fields.done(kVersion);
  return link;
}

const std::vector<Json>& list_in(JsonFields& fields, const char* key, const char* of) {
  const Json& value = fields.any(key);
  check(value.is(Json::Kind::list), of, ": ", key, " must be a list, got ", value.dump());
  return value.list();
}

OpRate read_rate(const Json& json) {
  JsonFields fields(json, "machine: a rate", kWriter);
  OpRate rate{fields.text("name"), fields.rate("seconds_per_flop"), {}, fields.rate("seconds_per_activation")};
  const std::string of = "machine: the rate of " + rate.name;
  for (const Json& pair : list_in(fields, "seconds_by_bytes", of.c_str())) {
    const bool is_pair = pair.is(Json::Kind::list) && pair.list().size() == 2 && pair.list()[0].is_number() && pair.list()[1].is_number();
    check(is_pair, of, ": seconds_by_bytes must be pairs of bytes and seconds, got ", pair.dump());
    const OpRate::Point point{pair.list()[0].number(), pair.list()[1].number()};
    const bool rises = rate.by_bytes.empty() ? point.bytes >= 0 : point.bytes > rate.by_bytes.back().bytes;
    check(rises && point.seconds >= 0 && point.bytes < 1e18 && point.seconds < 1e9, of,
          ": seconds_by_bytes must rise in bytes from 0, got ", pair.dump());
    rate.by_bytes.push_back(point);
  }
  fields.done(kVersion);
  return rate;
}

RateSet read_set(const Json& json) {
  JsonFields fields(json, "machine: a set of rates", kWriter);
  RateSet set{.threads = static_cast<int32_t>(fields.whole("threads", 1, kMostRanks)),
              .ranks = static_cast<int32_t>(fields.whole("ranks", 1, kMostRanks)),
              .ops = {},
              .step = fields.rate("step_seconds")};
  if (const int64_t memory = fields.whole("memory_bytes", 0, kMost); memory > 0) set.memory = memory;
  for (const Json& rate : list_in(fields, "ops", "machine: a set of rates")) {
    set.ops.push_back(read_rate(rate));
    check(set.ops.size() == 1 || set.ops[set.ops.size() - 2].name < set.ops.back().name, "machine: ops must be sorted by name, got ",
          set.ops.back().name, "; ", kWriter);
  }
  fields.done(kVersion);
  return set;
}

}  // namespace

std::string json_of(const Machine& machine) {
  JsonLine line;
  std::vector<std::string> sets;
  for (const RateSet& set : machine.rates) sets.push_back(json_of(set));
  line.add("version", kVersion).add("name", machine.name).add("source", machine.source).add("measured", machine.is_measured);
  line.add("processor", machine.processor).add("library", machine.library);
  line.add("device_memory_bytes", machine.device_memory)
      .add("ranks_per_node", machine.ranks_per_node)
      .add_json("machine", machine.profile.json());
  line.add_json("in_node", json_of(machine.in_node)).add_json("between_nodes", json_of(machine.between_nodes));
  return line.add_json("to_host", json_of(machine.to_host)).add_json("rates", json_list(sets)).text();
}

Machine parse_machine(std::string_view json) {
  const Json whole = parse_json(json, "machine");
  JsonFields all(whole, "machine", kWriter);
  const Json& version = all.any("version");
  check(version.as_whole() == kVersion, "machine: version must be ", kVersion, ", got ", version.dump(), "; ", kWriter);
  Machine machine;
  machine.name = all.text("name");
  machine.source = all.text("source");
  machine.is_measured = all.flag("measured");
  machine.processor = all.text("processor");
  machine.library = all.text("library");
  machine.device_memory = all.whole("device_memory_bytes", 1, kMost);
  machine.ranks_per_node = static_cast<int32_t>(all.whole("ranks_per_node", 1, kMostRanks));
  machine.profile = parse_machine_profile(all.any("machine").dump());
  machine.in_node = read_link(all, "in_node");
  machine.between_nodes = read_link(all, "between_nodes");
  machine.to_host = read_link(all, "to_host");
  for (const Json& set : list_in(all, "rates", "machine")) machine.rates.push_back(read_set(set));
  all.done(kVersion);
  return machine;
}

}  // namespace st
