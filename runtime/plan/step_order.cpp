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

void verify_order(const Program& program, const StepOrder& order) {
  const auto sections = static_cast<int32_t>(program.sections.size());
  std::vector<int32_t> computing, done(program.sections.size(), 0);  // sections of a micro-batch; by section: its next micro-batch
  for (int32_t s = 0; s < sections; ++s)
    if (!is_update(program, s)) computing.push_back(s);
  struct InFlight {
    int32_t micro_batch = -1;  // -1: none
    size_t ran = 0;            // of `computing`
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
    check_run(computing[here.ran] == run.section, "the micro-batch's next section in this buffer is ", computing[here.ran]);
    ++next;
    here = {run.micro_batch, here.ran + 1};
    if (here.ran == computing.size()) here = {};
  }
  const int32_t micro_batches = micro_batches_of(order);
  for (const int32_t s : computing)
    check(done[static_cast<size_t>(s)] == micro_batches, "order of a step: section ", s, " runs ", done[static_cast<size_t>(s)], " of ",
          micro_batches, " micro-batches");
}

}  // namespace st
