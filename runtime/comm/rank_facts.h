// Comparison of what each rank is about to do, before anyone does it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace st {

struct RankFact {
  std::string name, value;  // "lr", "0.001"
};

/// Collective call of all ranks. Throws the same rank_mismatch on all ranks if `facts` differ: the first rank that differs from rank 0, the
/// fact and both values; messages begin with `part`. The group stays usable. Other errors are the communicator's.
///   model   the rank with which a rank must agree; null: rank 0
void require_agreement(Communicator& ranks, std::span<const RankFact> facts, std::string_view part = "trainer",
                       const std::function<int(int rank)>& model = {});
/// The same of many facts, of which all ranks give `count`: an error names only a few that differ.
void require_agreement(Communicator& ranks, size_t count, const std::function<RankFact(size_t i)>& fact, std::string_view part);

}  // namespace st
