#include "team/rank_share.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace st {
namespace {

/// Those whose name begins as this one's: what a transport calls a host is "node7, process 4711".
int ranks_beside(const Communicator& ranks, std::string_view of_name) {
  const auto name_of = [&](int rank) {
    std::string name = ranks.host_of(rank);
    return name.substr(0, std::min(name.find(of_name), name.size()));
  };
  int count = 0;
  for (int rank = 0; rank < ranks.size(); ++rank) count += name_of(rank) == name_of(ranks.rank()) ? 1 : 0;
  return count;
}
int ranks_on_host(const Communicator& ranks) { return ranks_beside(ranks, ", process "); }

}  // namespace

int ranks_in_process(const Communicator& ranks) { return ranks_beside(ranks, "\n"); }  // of the whole name

int64_t memory_part(Communicator& ranks, const Context& context) {
  // Processes of a host share its memory; those with a device of its own memory have one each.
  const int64_t part = context.spare_memory(context.backend().is_host_memory() ? ranks_on_host(ranks) : ranks_in_process(ranks));
  ranks.barrier("memory");
  return part;
}

}  // namespace st
