// The memory of devices that the collectives of a plan need in addition to their operands: for what a network brings, and for copies.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace st {

/// Bytes that rank `rank` of `ranks` ranks needs for one collective over a network: what comes as terms of its sums
/// (exec/network_exchange.h). Each piece is 64-byte aligned. Nothing for what is gathered, or goes along the stage axis. A fast one along
/// the tensor axis needs memory for this rank's part of the sums alone, or none. One along the data axis may need all: in a step with fewer
/// rows than the recipe's not all ranks contribute, and what they give moves in the order of sums.
int64_t exchange_memory(const ExchangePlan& exchange, const Program& program, int rank, int ranks);

/// The most that a collective of the plan needs. They use the same memory, since one is under way at a time.
int64_t exchange_memory(const Plan& plan);

/// Bytes of terms that their sums overwrite, which are copied before other ranks read them (exec/device_collective.h). They are the
/// exchange's own. 0: each collective has its sums elsewhere.
int64_t staged_memory(const Plan& plan);

}  // namespace st
