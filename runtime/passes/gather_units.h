// The units of ZeRO-3: sharded parameters, gathered for a scope while it computes.
#pragma once

#include "base/mesh.h"
#include "ir/program.h"

namespace st {

/// Makes cut parameters (Slot::sums) and their working copies flat; each rank makes its shards of the copies. Bitwise the same
/// results. Called by zero_shard() and, for a forward pass, by plan_inference().
/// - Unit: the parameters that a boundary scope uses. Forward and backward each gather it (Role::gathered) before its first use there.
///   After the last use its memory is reused.
/// - A parameter that two scopes use is gathered in each. A scope that is recomputed in backward keeps its unit until its gradients are
///   made. A graph without scopes is one unit.
/// - Prefetch: units are ordered by first use, and each is gathered before the previous one computes, so that a second thread can gather it
///   meanwhile. Two units, and those of the enclosing scopes, are in memory at a time.
/// - over: data, or all: a forward pass on every rank of a mesh with stages or tensor ranks, which gathers whole parameters from the ranks
///   that have them, or pieces of them (Slot::piece).
void gather_units(Program& program, MeshAxis over = MeshAxis::data);

}  // namespace st
