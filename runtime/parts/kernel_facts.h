// A device's kernel class as facts that ranks compare.
#pragma once

#include <string_view>
#include <vector>

#include "comm/rank_facts.h"

namespace st {

/// The kernel class "cuda sm_90a/132 own=1f table=none" as facts: "kernels" is "cuda sm_90a/132", "kernels: own" is "1f", and so on. A
/// refusal then names the part that differs.
std::vector<RankFact> kernel_facts(std::string_view kernels);

}  // namespace st
