#include "late_run.h"

#include <algorithm>
#include <deque>
#include <map>

#include "plan/accesses.h"

namespace st {
namespace {

uint64_t mixed(uint64_t a, uint64_t b) {  // boost's hash_combine, wider
  return a ^ (b * 0x9e3779b97f4a7c15U + 0x7f4a7c15U + (a << 12) + (a >> 4));
}

class LateRun {
 public:
  LateRun(const Plan& plan, Timing timing, std::optional<size_t> without) : plan_(plan), timing_(timing), without_(without) {
    for (const Instruction& at : plan.instructions) accesses_.push_back(accesses_of(plan, at));
    for (const auto& of : accesses_)
      for (const MemoryAccess& access : of)
        for (const int64_t byte : {access.begin, access.end}) contents_[{access.arena, access.slot}][byte] = 0;
    seen_.resize(2 * plan.instructions.size());
  }

  std::vector<uint64_t> run() {
    for (size_t step = 0; step < 2; ++step) {
      for (size_t i = 0; i < plan_.instructions.size(); ++i) issue(step * plan_.instructions.size() + i);
      for (auto& [link, stream] : links_) stream.before_step = stream.posted();
      for (const Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer}) look_at(arena);  // as the host may
    }
    for (auto& [link, stream] : links_) force(stream, stream.posted());
    force(queue_, queue_.posted());
    force(copies_, copies_.posted());
    for (const auto& [arena, bytes] : contents_)
      for (const auto& [byte, content] : bytes) seen_.push_back(content);
    return seen_;
  }

 private:
  using Kind = Instruction::Kind;
  /// Work that has not run yet, in order.
  struct Stream {
    std::deque<size_t> waiting;
    size_t done = 0, before_step = 0;
    size_t posted() const { return done + waiting.size(); }
  };

  const Instruction& instruction(size_t number) const { return plan_.instructions[number % plan_.instructions.size()]; }
  const StageLink& link_of(const Instruction& at) const {
    return plan_.program.links[static_cast<size_t>(plan_.exchanges[static_cast<size_t>(at.exchange)].link)];
  }

  void issue(size_t number) {
    const Instruction& at = instruction(number);
    const bool is_left_out = without_ == number % plan_.instructions.size();
    const MeshAxis axis = at.exchange < 0 ? MeshAxis::tensor : plan_.exchanges[static_cast<size_t>(at.exchange)].axis;
    if (at.kind == Kind::await && !is_left_out) force(queue_, posts_[{at.exchange, at.micro_batch}]);
    if ((at.kind == Kind::release && !is_left_out) || at.kind == Kind::send) force(link(at), sends_[buffer_of(at)]);
    if (at.kind == Kind::exchange && (axis == MeshAxis::data || axis == MeshAxis::all)) force(queue_, queue_.posted());
    if (at.kind == Kind::receive) learn_from(link_of(at));
    if (at.kind == Kind::await_copy && !is_left_out) force(copies_, copied_[at.window]);
    if (at.kind == Kind::await || at.kind == Kind::release || at.kind == Kind::await_copy) return;
    if (at.is_copy()) {
      copies_.waiting.push_back(number);
      copied_[at.window] = copies_.posted();
      if (timing_ == Timing::at_once) force(copies_, copies_.posted());
      return;
    }
    if (at.kind != Kind::post && at.kind != Kind::send) return execute(number);
    Stream& stream = at.kind == Kind::post ? queue_ : link(at);
    stream.waiting.push_back(number);
    (at.kind == Kind::post ? posts_[{at.exchange, at.micro_batch}] : sends_[buffer_of(at)]) = stream.posted();
    if (timing_ == Timing::at_once) force(stream, stream.posted());
  }

  Stream& link(const Instruction& at) { return links_[plan_.exchanges[static_cast<size_t>(at.exchange)].link]; }

  std::pair<int32_t, int64_t> buffer_of(const Instruction& send) const { return {send.exchange, buffer_sent_from(plan_, send)}; }

  /// A stage that sends a use's gradient has the weight, and one that sends a weight has the gradients of earlier steps.
  void learn_from(const StageLink& received) {
    using Carries = StageLink::Carries;
    for (auto& [number, stream] : links_) {
      const StageLink& sent = plan_.program.links[static_cast<size_t>(number)];
      if (sent.to != received.from) continue;
      if (received.carries == Carries::uses && sent.carries == Carries::weights) force(stream, stream.posted());
      if (received.carries == Carries::weights && sent.carries == Carries::uses) force(stream, stream.before_step);
    }
  }

  void look_at(Arena arena) {
    for (const auto& [byte, content] : contents_[{arena, -1}]) seen_.push_back(content);
  }

  void force(Stream& stream, size_t until) {
    for (; stream.done < until; ++stream.done) {
      execute(stream.waiting.front());
      stream.waiting.pop_front();
    }
  }

  void execute(size_t number) {
    uint64_t read = number + 1;
    const auto& accesses = accesses_[number % plan_.instructions.size()];
    for (const MemoryAccess& access : accesses) {
      if (access.writes) continue;
      each_content(access, [&](uint64_t& content) { read = mixed(read, content); });
    }
    for (const MemoryAccess& access : accesses)
      if (access.writes)
        each_content(access, [&](uint64_t& content) {
          if (access.arena != Arena::workspace) read = mixed(read, content);  // sums are added to; scratch is not read
        });
    seen_[number] = read;
    for (const MemoryAccess& access : accesses)
      if (access.writes) each_content(access, [&](uint64_t& content) { content = read; });
  }

  template <class Visit>
  void each_content(const MemoryAccess& access, const Visit& visit) {
    auto& bytes = contents_.at({access.arena, access.slot});
    for (auto at = bytes.find(access.begin); at->first < access.end; ++at) visit(at->second);
  }

  const Plan& plan_;
  const Timing timing_;
  const std::optional<size_t> without_;
  std::vector<std::vector<MemoryAccess>> accesses_;                           // by instruction
  std::map<std::pair<Arena, SlotId>, std::map<int64_t, uint64_t>> contents_;  // from each byte at which an access begins or ends
  std::vector<uint64_t> seen_;                                                // by step and instruction
  Stream queue_, copies_;
  std::map<int32_t, Stream> links_;
  std::map<int32_t, size_t> copied_;                             // the last copy of each window
  std::map<std::pair<int32_t, int64_t>, size_t> posts_, sends_;  // the last one, by exchange and micro-batch, or buffer
};

}  // namespace

std::vector<uint64_t> seen_in_run(const Plan& plan, Timing timing, std::optional<size_t> without) {
  return LateRun(plan, timing, without).run();
}

}  // namespace st
