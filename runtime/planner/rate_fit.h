// Rates of instructions from measured times.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/target_machine.h"

namespace st {

/// One instruction: its rate's name, its work, and its time, typical of repeated steps.
struct OpTime {
  std::string name;
  OpWork work;
  double seconds = 0;
  bool is_first = false;  // of a micro-batch or of the update: its time includes the preparation
};

/// Fits the time of instructions of one name:
/// - with arithmetic: seconds = overhead + per_flop * flops + per_activation * activations + what bytes take, at a rate that may differ for
/// each level of a memory
///   hierarchy; no term is negative; minimises the squares of relative errors
/// - without: medians of instructions of similar size, made to rise with their bytes
/// `times` has at least one element, of any names.
OpRate fit_rate(std::string name, std::span<const OpTime> times);

/// The rates of all names, and of the classes of RateSet. Those that are first (OpTime::is_first) are left out where there are others of
/// their name.
std::vector<OpRate> fit_rates(std::span<const OpTime> times);

}  // namespace st
