// The payload that a plan's rank sends, known before anything runs: the bytes that a transport counts (traps.md, T6).
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace st {

/// Bytes of elements that the plan's rank sends in a step, without headers, by op. Fast collectives are counted as rings, which send what
/// the direct exchange sends; NCCL may choose another algorithm.
struct WireBytes {
  int64_t reduce_scatter = 0, all_gather = 0, rank_sums = 0, gather_squares = 0, messages = 0;  // messages: send
  int64_t tensor = 0;                                                                           // tensor_gather, tensor_scatter, tensor_sum
  int64_t collectives = 0;                                                                      // in which the rank takes part
  int64_t copies = 0;  // extra bytes, not in all(), of a step that first rebuilds the working copies (shard_masters)
  int64_t all() const { return reduce_scatter + all_gather + rank_sums + gather_squares + messages + tensor; }
};

/// Bytes of elements that the plan's rank sends for one instruction in a step of so many full micro-batches over all ranks; for a copy that
/// is made on request (Copy::gathered), those of a step that makes it.
int64_t sent_bytes(const Plan& plan, const Instruction& at, int64_t micro_batches);

/// Bytes that a rank sends to ranks of its own node, and to those of other nodes.
struct LinkBytes {
  int64_t in_node = 0, between_nodes = 0;
  int64_t all() const { return in_node + between_nodes; }
  LinkBytes& operator+=(const LinkBytes& more) {
    in_node += more.in_node;
    between_nodes += more.between_nodes;
    return *this;
  }
  bool operator==(const LinkBytes&) const = default;
};

/// The bytes of sent_bytes() by link: as the direct exchange sends them, and as a network's native collectives would.
/// - direct: a rank sends to each other rank of the group: its shard, or what that one owns
/// - native: rings in rank order, as NCCL's. A reduction sends all that other ranks own, a gather all but the shard of the next rank in
///   the ring, an all-reduce both. A ring leaves a node once; with one ring for each member that a node has, each leaves by another member,
///   so that a rank sends 1 / members of its bytes out of the node, here rounded down. Messages, the sums of the norm and the loss, and
///   reductions to which not all ranks contribute are exchanged directly (network_exchange.h)
/// Summed over a group, both send as much of a reduce_scatter, an all_gather and a sum of more than kSummedAtOnce bytes; with shards of one
/// length each rank does. They differ in what leaves a node. With fast
/// collectives sent_bytes() of a sum of at most kSummedAtOnce bytes is that of native.
struct SentByLink {
  LinkBytes direct, native;
};
SentByLink sent_by_link(const Plan& plan, const Instruction& at, int64_t micro_batches, int64_t ranks_per_node);

/// Bytes of the elements that all ranks of a collective's group own together: the same number on each of them.
int64_t collective_bytes(const Program& program, const ExchangePlan& exchange);

/// The nodes on which the ranks of this rank's group along an axis are.
int64_t nodes_of_group(const Program& program, MeshAxis axis, int64_t ranks_per_node);

/// Counts a step of `micro_batches` full micro-batches over all ranks. In a round in which this rank has rows, a reduce_scatter sends the
/// gradient shards that other ranks own. A gather sends this rank's shard once to every other rank. The comparison of replica_check is not
/// part of the plan.
WireBytes wire_bytes(const Plan& plan, int64_t micro_batches);

}  // namespace st
