#include "plan/ordering.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"

namespace st {
namespace {

using InstructionKind = Instruction::Kind;

/// By stream, how many of its events have ended.
using Clock = std::vector<int64_t>;

void join(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

/// The number of an event counts its stream's, from 1.
struct StreamEvent {
  size_t stream = 0;
  int64_t number = 0;
  size_t instruction = 0;
  int32_t step = 0;
  MemoryAccess access = {};
};

/// The last accesses to the bytes from a place on, up to `end`.
struct LastAccesses {
  int64_t end = 0;
  std::optional<StreamEvent> write;
  std::vector<StreamEvent> reads = {};  // since then, the last one of each stream
};

/// The last accesses to an arena, or to a slot in the host's memory, by the first byte.
class History {
 public:
  /// Calls `conflict` with each access that must be ordered before this one.
  template <class Conflict>
  void add(const StreamEvent& event, const Conflict& conflict) {
    const MemoryAccess& of = event.access;
    const auto first = split(of.begin), end = split(of.end);
    if (event.access.writes) {
      for (auto at = first; at != end; ++at) {
        for (const StreamEvent& read : at->second.reads) conflict(read);
        if (at->second.reads.empty() && at->second.write) conflict(*at->second.write);
      }
      ranges_.erase(first, end);
      ranges_.emplace(of.begin, LastAccesses{of.end, event});
      return;
    }
    int64_t begin = of.begin;
    for (auto at = first; at != end; ++at) {
      if (at->first > begin) ranges_.emplace(begin, LastAccesses{at->first, {}, {event}});
      begin = at->second.end;
      if (at->second.write) conflict(*at->second.write);
      std::vector<StreamEvent>& reads = at->second.reads;
      std::erase_if(reads, [&](const StreamEvent& read) { return read.stream == event.stream; });
      reads.push_back(event);
    }
    if (begin < of.end) ranges_.emplace(begin, LastAccesses{of.end, {}, {event}});
  }

 private:
  using Ranges = std::map<int64_t, LastAccesses>;

  /// The first range that begins at this byte or later; no range lies on both sides of it.
  Ranges::iterator split(int64_t at) {
    const auto next = ranges_.lower_bound(at);
    if (next == ranges_.begin() || (next != ranges_.end() && next->first == at)) return next;
    LastAccesses& before = std::prev(next)->second;
    if (before.end <= at) return next;
    LastAccesses after = before;
    before.end = at;
    return ranges_.emplace_hint(next, at, std::move(after));
  }

  Ranges ranges_;
};

/// The accesses of a plan's instructions, and of the host.
struct PlanAccesses {
  explicit PlanAccesses(const Plan& plan) {
    for (const Instruction& at : plan.instructions) of.push_back(accesses_of(plan, at));
    const Program& program = plan.program;
    for (SlotId slot = 0; slot < static_cast<SlotId>(program.slots.size()); ++slot) {
      const Role role = program.slot(slot).role;
      const bool lasts = role == Role::parameter || role == Role::gradient || role == Role::optimizer || role == Role::report;
      if (role == Role::control) before_step.push_back(access_of(plan, slot, 0, true));
      if (lasts || role == Role::output) after_step.push_back(access_of(plan, slot, plan.micro_batches - 1, false));
      if (slot == program.step.counters) before_micro_batch.push_back(access_of(plan, slot, 0, true));
    }
  }
  std::vector<std::vector<MemoryAccess>> of;  // by instruction
  std::vector<MemoryAccess> before_step, before_micro_batch, after_step;
};

/// Issues the instructions of two steps, with the time of each stream as a vector clock (Fidge 1988, Mattern 1989).
class TwoSteps {
 public:
  TwoSteps(const Plan& plan, const PlanAccesses& accesses, std::optional<size_t> without)
      : plan_(plan), accesses_(accesses), without_(without) {
    std::map<int32_t, size_t> links;
    size_t streams = kCopies + 1;
    for (const Instruction& at : plan.instructions)
      if (at.kind == InstructionKind::send) streams += links.emplace(link_of(at), streams).second ? 1 : 0;
    stream_of_link_ = std::move(links);
    now_.resize(streams);
    ended_.resize(streams);
  }

  Ordering run() {
    constexpr int32_t kSteps = 2;
    for (step_ = 0; step_ < kSteps; ++step_) {
      counts_ = step_ + 1 == kSteps;
      host(accesses_.before_step);
      int32_t micro_batch = -1;
      for (size_t i = 0; i < plan_.instructions.size(); ++i) {
        const Instruction& at = plan_.instructions[i];
        if (at.micro_batch != micro_batch) host(accesses_.before_micro_batch);
        micro_batch = at.micro_batch;
        issue(i, at);
      }
      host(accesses_.after_step);
      for (const auto& [link, stream] : stream_of_link_) sent_in_earlier_steps_[link] = std::ssize(ended_[stream]);
    }
    check_promise();
    made_.streams = static_cast<int32_t>(1 + std::ranges::count_if(ended_, [](const auto& events) { return !events.empty(); }));
    made_.waits = std::ranges::count_if(plan_.instructions, &Instruction::is_wait);
    return made_;
  }

 private:
  static constexpr size_t kComputing = 0, kQueue = 1, kCopies = 2;

  const ExchangePlan& exchange_of(const Instruction& at) const { return plan_.exchanges[static_cast<size_t>(at.exchange)]; }
  int32_t link_of(const Instruction& message) const { return exchange_of(message).link; }
  const StageLink& stage_link(int32_t link) const { return plan_.program.links[static_cast<size_t>(link)]; }

  void issue(size_t i, const Instruction& at) {
    const bool is_left_out = without_ == i;
    switch (at.kind) {
      case InstructionKind::await:
        if (const auto posted = posted_.find({at.exchange, at.micro_batch}); posted != posted_.end() && !is_left_out)
          wait(kQueue, posted->second);
        return;
      case InstructionKind::release:
        if (!is_left_out) wait_for_message(at);
        return;
      case InstructionKind::fetch:
      case InstructionKind::write_back:
        copied_[at.window] = run_on(kCopies, i);
        return;
      case InstructionKind::await_copy:
        if (const auto copied = copied_.find(at.window); copied != copied_.end() && !is_left_out) wait(kCopies, copied->second);
        return;
      case InstructionKind::post:
        posted_[{at.exchange, at.micro_batch}] = run_on(kQueue, i);
        return;
      case InstructionKind::send: {
        wait_for_message(at);
        const size_t stream = stream_of_link_.at(link_of(at));
        sent_[buffer_of(at)] = {stream, run_on(stream, i)};
        return;
      }
      case InstructionKind::exchange:
        if (const MeshAxis axis = exchange_of(at).axis; axis == MeshAxis::data || axis == MeshAxis::all)
          wait(kQueue, std::ssize(ended_[kQueue]));
        break;
      case InstructionKind::receive:
        rely_on(stage_link(link_of(at)));
        break;
      case InstructionKind::kernel:
        break;
    }
    compute(i, accesses_.of[i]);
  }

  /// Runs on the computing thread.
  void compute(size_t i, const std::vector<MemoryAccess>& accesses) {
    ++now_[kComputing];
    access({kComputing, now_[kComputing], i, step_}, now_, accesses);
  }
  void host(const std::vector<MemoryAccess>& accesses) { compute(Unordered::kHost, accesses); }

  /// Runs on another stream, after all that the computing thread has issued and all earlier work of the stream. Returns its number.
  int64_t run_on(size_t stream, size_t i) {
    Clock clock = now_;
    if (!ended_[stream].empty()) join(clock, ended_[stream].back());
    const int64_t number = std::ssize(ended_[stream]) + 1;
    access({stream, number, i, step_}, clock, accesses_.of[i]);
    clock[stream] = number;
    ended_[stream].push_back(std::move(clock));
    return number;
  }

  void wait(size_t stream, int64_t number) {
    if (number > 0) join(now_, ended_[stream][static_cast<size_t>(number - 1)]);
  }
  void wait_for_message(const Instruction& at) {
    if (const auto sent = sent_.find(buffer_of(at)); sent != sent_.end()) wait(sent->second.first, sent->second.second);
  }

  /// The exchange, and the buffer of the stash from which it sends in this micro-batch.
  std::pair<int32_t, int64_t> buffer_of(const Instruction& send) const { return {send.exchange, buffer_sent_from(plan_, send)}; }

  /// A message from another stage implies that messages of this one have arrived there.
  void rely_on(const StageLink& link) {
    using Carries = StageLink::Carries;
    for (const auto& [other, stream] : stream_of_link_) {
      const StageLink& own = stage_link(other);
      if (own.to != link.from) continue;
      if (link.carries == Carries::uses && own.carries == Carries::weights) wait(stream, std::ssize(ended_[stream]));
      if (link.carries == Carries::weights && own.carries == Carries::uses) wait(stream, sent_in_earlier_steps_[other]);
    }
  }

  /// Checks this stage's part of the promise: in each step it receives the weights before it sends gradients of their uses.
  void check_promise() {
    for (size_t send = 0; send < plan_.instructions.size(); ++send) {
      const Instruction& sent = plan_.instructions[send];
      if (sent.kind != InstructionKind::send || stage_link(link_of(sent)).carries != StageLink::Carries::uses) continue;
      for (size_t later = send + 1; later < plan_.instructions.size(); ++later) {
        const Instruction& at = plan_.instructions[later];
        if (at.kind != InstructionKind::receive) continue;
        const StageLink& link = stage_link(link_of(at));
        if (link.carries == StageLink::Carries::weights && link.from == stage_link(link_of(sent)).to) made_.broken.push_back({send, later});
      }
    }
  }

  /// Reads before writes, as accesses_of() has them: an instruction is in no conflict with itself.
  void access(const StreamEvent& as, const Clock& clock, const std::vector<MemoryAccess>& accesses) {
    std::set<std::pair<size_t, int64_t>> seen;  // events
    for (const MemoryAccess& one : accesses) {
      StreamEvent event = as;
      event.access = one;
      history_[{one.arena, one.slot}].add(event, [&](const StreamEvent& before) {
        const bool is_itself = before.stream == event.stream && before.number == event.number;
        if (is_itself || !seen.insert({before.stream, before.number}).second) return;
        made_.conflicts += counts_ ? 1 : 0;
        made_.across += counts_ && before.stream != event.stream ? 1 : 0;
        if (before.stream != event.stream && clock[before.stream] < before.number) report(before, event);
      });
    }
  }

  void report(const StreamEvent& before, const StreamEvent& after) {
    const bool in_next_step = before.step != after.step;
    if (!reported_.insert({before.instruction, after.instruction, in_next_step}).second) return;
    const int64_t begin = std::max(before.access.begin, after.access.begin), end = std::min(before.access.end, after.access.end);
    Unordered fault{before.instruction, after.instruction, in_next_step, before.access, after.access};
    for (MemoryAccess* const access : {&fault.before, &fault.after}) {
      access->begin = begin;
      access->end = end;
    }
    made_.faults.push_back(fault);
  }

  const Plan& plan_;
  const PlanAccesses& accesses_;
  const std::optional<size_t> without_;
  std::map<int32_t, size_t> stream_of_link_;
  Clock now_;                              // of the computing thread
  std::vector<std::vector<Clock>> ended_;  // by stream and event, except the computing thread's: what has ended when it ends
  std::map<int32_t, int64_t> copied_;      // by window: the last copy
  std::map<std::pair<int32_t, int32_t>, int64_t> posted_;                   // by exchange and micro-batch: the last one
  std::map<std::pair<int32_t, int64_t>, std::pair<size_t, int64_t>> sent_;  // by exchange and buffer: stream and number of the last one
  std::map<int32_t, int64_t> sent_in_earlier_steps_;                        // by link
  std::map<std::pair<Arena, SlotId>, History> history_;
  std::set<std::tuple<size_t, size_t, bool>> reported_;
  int32_t step_ = 0;
  bool counts_ = false;  // conflicts of this step
  Ordering made_;
};

const Node& node_at(const Plan& plan, const Instruction& at) {
  return plan.program.sections[static_cast<size_t>(at.section)].graph[at.node];
}

std::string name_of_instruction(const Plan& plan, size_t i) {
  if (i == Unordered::kHost) return "the host";
  const Instruction& at = plan.instructions[i];
  const Phase phase = plan.program.sections[static_cast<size_t>(at.section)].phase;
  const std::string where = phase == Phase::update ? "" : text(" of micro-batch ", at.micro_batch);
  return text(name_of(phase), " %", at.node, where, " (", name_of(node_at(plan, at).op), ", instruction ", i, ")");
}

}  // namespace

Ordering ordering_of(const Plan& plan, std::optional<size_t> without) { return TwoSteps(plan, PlanAccesses(plan), without).run(); }

std::vector<size_t> redundant_waits(const Plan& plan) {
  const PlanAccesses accesses(plan);
  std::vector<size_t> redundant;
  for (size_t i = 0; i < plan.instructions.size(); ++i)
    if (plan.instructions[i].is_wait() && TwoSteps(plan, accesses, i).run().holds()) redundant.push_back(i);
  return redundant;
}

std::string text_of(const Plan& plan, const Unordered& fault) {
  const MemoryAccess& bytes = fault.after;
  const std::string where = bytes.slot >= 0 ? plan.program.slot(bytes.slot).name : std::string(name_of(bytes.arena));
  const bool is_message = fault.first != Unordered::kHost && plan.instructions[fault.first].kind == InstructionKind::send;
  const std::string second = name_of_instruction(plan, fault.second);
  return text(name_of_instruction(plan, fault.first), fault.before.writes ? " writes" : " reads", " bytes ", bytes.begin, " to ",
              bytes.end - 1, " of ", where, ", which ", second, fault.after.writes ? " writes" : " reads",
              fault.in_next_step ? " in the next step" : "", "; ", is_message ? "a release" : "an await", " of instruction ", fault.first,
              " before ", second, " would order them");
}

std::string text_of(const Plan& plan, const BrokenPromise& broken) {
  return text(name_of_instruction(plan, broken.send), " sends a use's gradient before ", name_of_instruction(plan, broken.receive),
              " has received the weight; the receive must come first");
}

std::string print_ordering(const Plan& plan) {
  const Ordering made = ordering_of(plan);
  const auto count = [](int64_t number, const char* noun) { return text(number, " ", noun, number == 1 ? "" : "s"); };
  std::string out = text("ordering: ", count(made.conflicts, "conflict"), " on ", count(made.streams, "stream"));
  if (!made.holds()) {
    out += text(", ", made.faults.size() + made.broken.size(), " of them not ordered\n");
    for (const Unordered& fault : made.faults) out += "  " + text_of(plan, fault) + "\n";
    for (const BrokenPromise& broken : made.broken) out += "  " + text_of(plan, broken) + "\n";
    return out;
  }
  if (made.streams == 1) return out + ", which runs one instruction after another\n";
  return out + text(", ", made.across, " of them between two streams; all are ordered, by ", count(made.waits, "wait"), "\n");
}

}  // namespace st
