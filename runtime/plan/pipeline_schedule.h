// Pipeline schedules: which stage computes which micro-batch when. A schedule is a table, which check_schedule() proves before anything
// runs; every schedule computes the same sums in the same order.
//
// For p stages and m micro-batches: most in flight on stage s; makespan, in units of one micro-batch on one stage (F + B + W).
// - gpipe: m; m + p - 1. Huang et al. 2019, arXiv:1811.06965, backward by number
// - 1f1b: min(m, p - s); m + p - 1. Narayanan et al. 2019, PipeDream-Flush
// - interleaved: chunks, see below; m + (p - 1) / v for m a multiple of p. Narayanan et al. 2021
// - zb-h1, backward is split: min(m, p); (m + p - 1)(F + B) + W max(1, m - p + 1) for W <= min(F, B)
// - zb-v, backward is split: 2 p chunks; m + (p - 1) F / 2 for F = B = W, m >= p
//
// The last two are Qi et al. 2023, "Zero Bubble Pipeline Parallelism", arXiv:2401.10241. B is the gradient of a stage's input, W that of
// its weights. On stage 0, interleaved has at most (v - 1) g + 2 p - 1 chunks in flight, g = p if m is a multiple of p, else at most m
// below p and 2 p - 1 above it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace st {

/// A stage's work on a micro-batch: Phase::forward and then Phase::backward, or backward_input and backward_weight.
struct StageAction {
  Phase phase = Phase::forward;
  int32_t chunk = 0, micro_batch = 0;
  bool operator==(const StageAction&) const = default;
};

struct PipelineSchedule {
  /// The order of the model's parts, stages x chunks of them: part c p + s is chunk c of stage s; or chunk 1 goes back from the last stage
  /// to the first one, which then has both ends of the model.
  enum class Placement : int32_t { loop, v };

  int32_t stages = 1, chunks = 1, micro_batches = 1;
  Placement placement = Placement::loop;
  std::vector<std::vector<StageAction>> actions;  // by stage, in the order in which it runs them

  int32_t parts() const { return stages * chunks; }
  int32_t part_of(int32_t stage, int32_t chunk) const {
    return placement == Placement::v && chunk == 1 ? 2 * stages - 1 - stage : chunk * stages + stage;
  }
  int32_t stage_of(int32_t part) const { return placement == Placement::v && part >= stages ? 2 * stages - 1 - part : part % stages; }
  std::vector<int32_t> stage_of_parts() const {
    std::vector<int32_t> stages_of;
    for (int32_t part = 0; part < parts(); ++part) stages_of.push_back(stage_of(part));
    return stages_of;
  }
  int32_t chunk_of(int32_t part) const { return part / stages; }
};

/// One of the schedules above. `chunks`: of each stage; 2 or more for interleaved, 2 for zb-v, else 1. Throws invalid_argument with what is
/// allowed.
PipelineSchedule make_schedule(std::string_view name, int32_t stages, int32_t chunks, int32_t micro_batches);

/// The chunks that a schedule of this name has if none are asked for.
int32_t usual_chunks(std::string_view name);

/// A host's table, as PyTorch's pipelining writes schedules (_PipelineScheduleRuntime, compute_only): a line for each stage, cells
/// separated by commas, each a part's number, what is done (F forward, B backward, I backward of the input, W of the weights) and the
/// micro-batch: "0F0,0F1,,0B0,0B1". Empty cells are pauses and mean nothing. Parts lie in a loop, or in a V if the lines say so. Throws
/// invalid_argument with line and cell, or what check_schedule() throws.
PipelineSchedule parse_schedule(std::string_view table);
/// Whether a text is such a table, and not a schedule's name: it has a comma.
bool is_schedule_table(std::string_view text);
std::string print_schedule(const PipelineSchedule& schedule);

/// Proves that a schedule ends and computes everything once: each part runs forward and backward of each micro-batch, or both halves of
/// backward, in the order of their dependencies and, for each part and phase, by number of the micro-batch (so that messages arrive as they
/// are awaited, and sums are added in order); and that no stages wait for each other. Throws invalid_argument with the action or the cycle.
void check_schedule(const PipelineSchedule& schedule);

/// Whether some backward is split into the gradient of the input and that of the weights.
bool splits_backward(const PipelineSchedule& schedule);

/// Chunks in flight at the same time on a stage, each from its forward to the end of its backward: of one chunk, or of all.
int32_t in_flight(const PipelineSchedule& schedule, int32_t stage, int32_t chunk);
int32_t in_flight(const PipelineSchedule& schedule, int32_t stage);

/// By link, the most gradients that a stage may have sent before the other one has the first of them: with memory for so many, no stage
/// ever waits for room, so that messages make no cycles. 1 for links that carry anything else: what a forward sends lies in the stash,
/// which its micro-batch gives up after the backward of all later parts.
std::vector<int32_t> messages_under_way(const PipelineSchedule& schedule, std::span<const StageLink> links);

/// Times of a stage's actions on one micro-batch, all of the stage's chunks together. B and W of an action that is not split are added.
struct StageTimes {
  double forward = 1, backward_input = 1, backward_weight = 1;
};
/// The time from the first action to the end of the last one, by when nothing but the actions takes time.
double makespan(const PipelineSchedule& schedule, const StageTimes& times);
/// The share of makespan() in which a stage waits, the same on all stages: 1F1B, (p - 1) / (m + p - 1).
double bubble(const PipelineSchedule& schedule, const StageTimes& times);

}  // namespace st
