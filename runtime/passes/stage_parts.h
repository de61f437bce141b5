// The parts of a model for a pipeline: consecutive outermost boundary scopes, balanced by cost or as given.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace st {

/// By node of the forward section, its part, from 0 to parts - 1: no node reads what a later part computes. Loads, constants and views are
/// made wherever they are read, whatever their part here.
///   stage_of  by part, the stage that computes it
///   starts    names of the scopes with which parts 1 and up begin, separated by commas; empty: parts with which the most expensive stage
///             is cheapest (op_cost.h). A stage costs the sum of its parts; with several parts a stage the cut is a local optimum: moving
///             one scope from one part to another does not make it cheaper. With more than 128 parts the most expensive part is cheapest
///   scopes    the scopes with which parts 1 and up begin, as another program of the model has them (starts_of); empty: by `starts`
/// Throws invalid_argument, with the scopes, if there are fewer scopes than parts, for a start that is not one of them, and for a scope
/// that reads what a scope after it computes.
std::vector<int32_t> parts_of_forward(const Program& program, std::span<const int32_t> stage_of, std::string_view starts,
                                      std::span<const RegionId> scopes = {});

/// The scopes with which parts 1 and up begin.
std::vector<RegionId> starts_of(const Program& program, std::span<const int32_t> part_of_node);

/// Made again wherever it is wanted, as autodiff does.
inline bool is_made_anywhere(const Node& node) { return node.op == Op::load || node.op == Op::fill || node.op == Op::reshape; }

/// The outermost boundary scope around a region; 0: none.
RegionId outermost_of(const Program& program, RegionId region);

}  // namespace st
