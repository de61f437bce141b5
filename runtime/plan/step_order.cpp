#include "plan/step_order.h"

#include <algorithm>

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

int32_t buffers_of(const StepOrder& order) {
  int32_t count = 1;
  for (const SectionRun& run : order) count = std::max(count, run.buffer + 1);
  return count;
}

StepOrder in_pipeline(const Program& program, const PipelineSchedule& schedule) {
  const auto section_of = [&](Phase phase, int32_t chunk) {
    const Section* const found = program.find(phase, program.stage, chunk);
    require(found != nullptr, Code::internal, "order of a step: stage ", program.stage, " has no ", name_of(phase), " of chunk ", chunk);
    return static_cast<int32_t>(found - program.sections.data());
  };
  const bool is_split = std::ranges::any_of(program.sections, [](const Section& of) { return of.phase == Phase::backward_weight; });
  const int64_t runs = int64_t{schedule.chunks} * (is_split ? 3 : 2);  // of a micro-batch
  std::vector<int32_t> buffer_of(static_cast<size_t>(schedule.micro_batches), -1);
  std::vector<int64_t> ran(buffer_of.size(), 0);
  std::vector<bool> is_taken;
  StepOrder order;
  const auto run = [&](Phase phase, const StageAction& action) {
    const auto k = static_cast<size_t>(action.micro_batch);
    int32_t& buffer = buffer_of[k];
    if (buffer < 0) {
      buffer = static_cast<int32_t>(std::ranges::find(is_taken, false) - is_taken.begin());
      if (buffer == std::ssize(is_taken)) is_taken.push_back(false);
      is_taken[static_cast<size_t>(buffer)] = true;
    }
    order.push_back({section_of(phase, action.chunk), action.micro_batch, buffer});
    if (++ran[k] == runs) is_taken[static_cast<size_t>(buffer)] = false;
  };
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
  struct InFlight {
    int32_t micro_batch = -1;          // -1: none
    size_t in_order = 0, weights = 0;  // sections that it has run
  };
  std::vector<InFlight> buffers(static_cast<size_t>(buffers_of(order)));
  bool updates = false;
  for (const SectionRun& run : order) {
    const auto check_run = [&](bool holds, const auto&... why) {
      check(holds, "order of a step: section ", run.section, " of micro-batch ", run.micro_batch, " in buffer ", run.buffer, ": ", why...);
    };
    check_run(run.section >= 0 && run.section < sections && run.micro_batch >= 0 && run.buffer >= 0, "sections are 0 to ", sections - 1,
              ", micro-batches and buffers count from 0");
    int32_t& next = done[static_cast<size_t>(run.section)];
    if (is_update(program, run.section)) {
      check_run(next++ == 0, "the update runs once");
      updates = true;
      continue;
    }
    InFlight& here = buffers[static_cast<size_t>(run.buffer)];
    check_run(!updates, "it comes after the update");
    check_run(run.micro_batch == next, "the section's next micro-batch is ", next);
    check_run(here.micro_batch < 0 || here.micro_batch == run.micro_batch, "the buffer still belongs to micro-batch ", here.micro_batch);
    ++next;
    here.micro_batch = run.micro_batch;
    if (phase_of(run.section) == Phase::backward_weight) {
      const int32_t input = input_of(run.section);
      check_run(done[static_cast<size_t>(input)] > run.micro_batch, "its backward_input, section ", input, ", has not run");
      ++here.weights;
    } else {
      check_run(here.in_order < in_order.size() && in_order[here.in_order] == run.section,
                "the micro-batch's next section in this buffer is ", in_order[std::min(here.in_order, in_order.size() - 1)]);
      ++here.in_order;
    }
    if (here.in_order + here.weights == computing.size()) here = {};
  }
  const int32_t micro_batches = micro_batches_of(order);
  for (const int32_t s : computing)
    check(done[static_cast<size_t>(s)] == micro_batches, "order of a step: section ", s, " runs ", done[static_cast<size_t>(s)], " of ",
          micro_batches, " micro-batches");
}

}  // namespace st
