#include "plan/step_order.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace st {
namespace {

bool is_update(const Program& program, int32_t section) { return program.sections[static_cast<size_t>(section)].phase == Phase::update; }

}  // namespace

StepOrder in_turn(const Program& program, int64_t micro_batches) {
  StepOrder order;
  const auto sections = static_cast<int32_t>(program.sections.size());
  for (int32_t k = 0; k < micro_batches; ++k)
    for (int32_t s = 0; s < sections; ++s)
      if (!is_update(program, s)) order.push_back({s, k});
  for (int32_t s = 0; s < sections; ++s)
    if (is_update(program, s)) order.push_back({s, static_cast<int32_t>(micro_batches - 1)});
  return order;
}

int32_t micro_batches_of(const StepOrder& order) {
  int32_t count = 0;
  for (const SectionRun& run : order) count = std::max(count, run.micro_batch + 1);
  return count;
}

namespace {

bool is_stashed(const Slot& slot) { return slot.role == Role::stash || slot.role == Role::output; }

template <class Visit>
void each_slot(const Section& section, const Visit& visit) {
  for (const Node& node : section.graph.nodes)
    for (const auto* slots : {&node.reads, &node.writes})
      for (const SlotId slot : *slots) visit(slot);
}

}  // namespace

std::vector<int32_t> chunks_of_slots(const Program& program) {
  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> chunks(program.slots.size(), kNone);
  for (const Section& section : program.sections)
    each_slot(section, [&](SlotId id) {
      int32_t& chunk = chunks[static_cast<size_t>(id)];
      if (is_stashed(program.slot(id))) chunk = std::min(chunk, section.chunk);
    });
  for (int32_t& chunk : chunks) chunk = chunk == kNone ? 0 : chunk;
  return chunks;
}

std::vector<std::vector<BufferUse>> buffer_uses(const Program& program, const StepOrder& order) {
  int32_t chunks = 1;
  for (const Section& section : program.sections) chunks = std::max(chunks, section.chunk + 1);
  const std::vector<int32_t> chunk_of = chunks_of_slots(program);
  const auto count = static_cast<size_t>(chunks);
  std::vector<std::vector<bool>> needs(program.sections.size(), std::vector<bool>(count));  // by section and chunk
  std::vector<bool> has_outputs(count);
  for (size_t s = 0; s < program.sections.size(); ++s) {
    if (is_update(program, static_cast<int32_t>(s))) continue;
    needs[s][static_cast<size_t>(program.sections[s].chunk)] = true;
    each_slot(program.sections[s], [&](SlotId id) {
      const auto chunk = static_cast<size_t>(chunk_of[static_cast<size_t>(id)]);
      if (is_stashed(program.slot(id))) needs[s][chunk] = true;
      if (program.slot(id).role == Role::output) has_outputs[chunk] = true;
    });
  }
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  const auto micro_batches = static_cast<size_t>(micro_batches_of(order));
  std::vector<std::vector<BufferUse>> uses(count, std::vector<BufferUse>(micro_batches, {kNone, 0}));
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t c = 0; c < count; ++c) {
      if (!needs[static_cast<size_t>(order[i].section)][c]) continue;
      BufferUse& use = uses[c][static_cast<size_t>(order[i].micro_batch)];
      use.from = std::min(use.from, i);
      use.to = i;
    }
  for (size_t c = 0; c < count; ++c)
    if (has_outputs[c] && micro_batches > 0) uses[c].back().to = order.size() - 1;
  return uses;
}

std::vector<int32_t> in_flight(const Program& program, const StepOrder& order) {
  std::vector<int32_t> most;
  for (const std::vector<BufferUse>& uses : buffer_uses(program, order)) {
    size_t first = 0, most_of_chunk = 1;  // the oldest micro-batch in flight
    for (size_t k = 0; k < uses.size(); ++k) {
      if (uses[k].from > uses[k].to) continue;  // not used, as by a step that only updates
      while (uses[first].to < uses[k].from) ++first;
      most_of_chunk = std::max(most_of_chunk, k - first + 1);
    }
    most.push_back(static_cast<int32_t>(most_of_chunk));
  }
  return most;
}

StepOrder in_pipeline(const Program& program, const PipelineSchedule& schedule) {
  const auto section_of = [&](Phase phase, int32_t chunk) {
    const Section* const found = program.find(phase, program.stage, chunk);
    require(found != nullptr, Code::internal, "order of a step: stage ", program.stage, " has no ", name_of(phase), " of chunk ", chunk);
    return static_cast<int32_t>(found - program.sections.data());
  };
  const bool is_split = std::ranges::any_of(program.sections, [](const Section& of) { return of.phase == Phase::backward_weight; });
  StepOrder order;
  const auto run = [&](Phase phase, const StageAction& action) { order.push_back({section_of(phase, action.chunk), action.micro_batch}); };
  for (const StageAction& action : schedule.actions[static_cast<size_t>(program.stage)]) {
    if (action.phase != Phase::backward || !is_split) {
      run(action.phase, action);
      continue;
    }
    run(Phase::backward_input, action);
    run(Phase::backward_weight, action);
  }
  for (size_t s = 0; s < program.sections.size(); ++s)
    if (is_update(program, static_cast<int32_t>(s))) order.push_back({static_cast<int32_t>(s), schedule.micro_batches - 1});
  return order;
}

void verify_order(const Program& program, const StepOrder& order) {
  const auto sections = static_cast<int32_t>(program.sections.size());
  const auto phase_of = [&](int32_t s) { return program.sections[static_cast<size_t>(s)].phase; };
  std::vector<int32_t> computing, done(program.sections.size(), 0);  // sections of a micro-batch; by section: its next micro-batch
  std::vector<int32_t> in_order;                                     // those of them that run in the program's order
  for (int32_t s = 0; s < sections; ++s) {
    if (!is_update(program, s)) computing.push_back(s);
    if (!is_update(program, s) && phase_of(s) != Phase::backward_weight) in_order.push_back(s);
  }
  const auto input_of = [&](int32_t weight) {
    const Section& of = program.sections[static_cast<size_t>(weight)];
    const Section* const found = program.find(Phase::backward_input, of.stage, of.chunk);
    require(found != nullptr, Code::internal, "order of a step: section ", weight, " has no backward_input");
    return static_cast<int32_t>(found - program.sections.data());
  };
  std::vector<size_t> ran(static_cast<size_t>(micro_batches_of(order)), 0);  // by micro-batch, of in_order
  bool updates = false;
  for (const SectionRun& run : order) {
    const auto check_run = [&](bool holds, const auto&... why) {
      check(holds, "order of a step: section ", run.section, " of micro-batch ", run.micro_batch, ": ", why...);
    };
    check_run(run.section >= 0 && run.section < sections && run.micro_batch >= 0, "sections are 0 to ", sections - 1,
              ", micro-batches count from 0");
    int32_t& next = done[static_cast<size_t>(run.section)];
    if (is_update(program, run.section)) {
      check_run(next++ == 0, "the update runs once");
      updates = true;
      continue;
    }
    check_run(!updates, "it comes after the update");
    check_run(run.micro_batch == next, "the section's next micro-batch is ", next);
    ++next;
    if (phase_of(run.section) == Phase::backward_weight) {
      const int32_t input = input_of(run.section);
      check_run(done[static_cast<size_t>(input)] > run.micro_batch, "its backward_input, section ", input, ", has not run");
      continue;
    }
    size_t& at = ran[static_cast<size_t>(run.micro_batch)];
    check_run(at < in_order.size() && in_order[at] == run.section, "the micro-batch's next section is ",
              in_order[std::min(at, in_order.size() - 1)]);
    ++at;
  }
  const int32_t micro_batches = micro_batches_of(order);
  for (const int32_t s : computing)
    check(done[static_cast<size_t>(s)] == micro_batches, "order of a step: section ", s, " runs ", done[static_cast<size_t>(s)], " of ",
          micro_batches, " micro-batches");
}

}  // namespace st
