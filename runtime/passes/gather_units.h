// The units of ZeRO-3: parameters that lie in pieces, whole for a scope while it computes.
#pragma once

#include "ir/program.h"

namespace st {

/// Of the parameters that are cut (program.cuts) and of their working copies leaves this rank's pieces alone, which working copies are made
/// in. What a boundary scope takes of them is its unit: each of forward and backward gathers it (Role::gathered) before its first use
/// there, and behind the last one its memory is another's. So a parameter that two scopes use is gathered in each, a scope that runs again
/// in backward keeps its unit until it has its gradients, and a graph without scopes is one unit.
///
/// Units follow each other by their first uses, and each is gathered before the one in front of it computes: two at a time, and those of
/// the scopes around them. That is what lets a thread beside the computing one gather it meanwhile. The same bits. Called by
/// zero_shard(), and of a forward pass alone by plan_inference().
void gather_units(Program& program);

}  // namespace st
