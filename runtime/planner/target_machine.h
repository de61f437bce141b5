// A machine as the planner sees it: its memory, and how fast its ranks compute and exchange, from a data sheet or measured.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine_profile.h"
#include "planner/op_work.h"

namespace st {

/// The time of instructions of one name (rate_name), or of a class of them.
struct OpRate {
  struct Point {
    double bytes = 0, seconds = 0;
  };
  std::string name;
  double per_flop = 0;          // seconds
  std::vector<Point> by_bytes;  // rising; linear between points, beyond the last one at the slope before it; empty: flops alone take time
  double per_activation = 0;    // seconds

  double seconds(const OpWork& work) const;
};

/// Rates of ranks that have so many threads, while so many of them run on a node. By name: rate(). A class holds for names without a rate
/// of their own: "products.bf16", "memory", "exchange.data", "exchange.tensor", "exchange.stage".
struct RateSet {
  int32_t threads = 1, ranks = 1;
  std::vector<OpRate> ops;  // by name
  double step = 0;          // seconds of a step outside its instructions
  /// For plans that need at most so many bytes: what a step leaves in a processor's last cache, the next one finds there.
  int64_t memory = kAnyMemory;
  static constexpr int64_t kAnyMemory = std::numeric_limits<int64_t>::max();

  const OpRate* find(std::string_view name) const;  // null: none
};

/// A link between two devices, one way.
struct LinkRate {
  double latency = 0;           // seconds
  double bytes_per_second = 0;  // 0: unknown
};

struct Machine {
  std::string name;          // "a100-80g"
  std::string source;        // of its numbers: a data sheet, or who measured what when
  bool is_measured = false;  // otherwise predicted times are estimates
  std::string processor;     // that was measured, and by which version of this library; empty: none
  std::string library;
  MachineProfile profile;      // what its kernels need; `memory` is that of a node, for the host side
  int64_t device_memory = 0;   // bytes that the ranks of a device have, with what is reserved; cpu: of a node, shared by its ranks
  int32_t ranks_per_node = 1;  // devices; cpu: cores
  LinkRate in_node, between_nodes, to_host;
  std::vector<RateSet> rates;

  /// The rates for `threads` threads a rank and `ranks` ranks on a node, and a plan that needs `memory` bytes (memory_of): those measured
  /// so, or else the nearest ones.
  const RateSet& rates_for(int32_t threads, int32_t ranks, int64_t memory = RateSet::kAnyMemory) const;
};

/// Machines whose numbers are built in, from their makers' data sheets: a100-40g, a100-80g, a800-80g, h100-sxm, h200, v100-16g, v100-32g.
const std::vector<std::string>& known_machines();
/// Throws invalid_argument for an unknown name (suggests the nearest).
Machine machine_named(std::string_view name);
/// A cpu that was not measured: its products at 0.8 of the rate in the table of processors (gemm/machine_model.cpp), its memory at 8 GB/s a
/// core. `cores` are those of the node, and its ranks at most. Of another device `source` says that these are no rates of it.
Machine machine_of(const MachineProfile& profile, int32_t cores);
/// A link between nodes by its name: 10g, 25g, 100g, 400g (Gbit/s a device), nvlink. Throws invalid_argument for others.
LinkRate link_named(std::string_view name);

/// A machine as text, for a file; `library` is the version that measured it.
std::string json_of(const Machine& machine);
/// Reads what json_of() wrote. Throws invalid_argument with the field, its value and what is allowed; a file of another version of this
/// format is refused.
Machine parse_machine(std::string_view json);

}  // namespace st
