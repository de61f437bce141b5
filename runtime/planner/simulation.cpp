#include "planner/simulation.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace st {
namespace {

using EventKind = TraceEvent::Kind;

constexpr double kPending = -1;

/// A one-way link between two ranks.
struct SimulatedLink {
  std::vector<double> messages;  // when each left its sender's memory and arrived
  size_t received = 0;
  int32_t waiting = -1;  // the rank that waits for its next message
};

/// The collective at which the ranks of a group arrive; all before it are made.
struct Group {
  double begins = 0, longest = 0;
  int32_t call = -1;             // that the first of them makes (CallNumbers)
  std::vector<int32_t> members;  // that have arrived
};

/// A number for each collective that differs from others, equal on all ranks.
class CallNumbers {
 public:
  /// By index in RankTrace::collectives. Valid while this object is.
  const std::vector<int32_t>& of(const RankTrace& trace) {
    const auto [found, is_new] = of_trace_.try_emplace(&trace);
    if (!is_new) return found->second;
    for (const NamedCollective& each : trace.collectives)
      found->second.push_back(
          numbers_.try_emplace({each.name, each.label, each.dtype, each.bytes}, static_cast<int32_t>(numbers_.size())).first->second);
    return found->second;
  }
  std::string text_of(int32_t number) const {
    for (const auto& [call, of_call] : numbers_)
      if (of_call == number) {
        const auto& [name, label, dtype, bytes] = call;
        return text(name, " of ", label, ", ", bytes, " bytes of ", name_of(dtype));
      }
    return "a collective without a name";
  }

 private:
  std::map<std::tuple<std::string, std::string, DType, int64_t>, int32_t> numbers_;
  std::unordered_map<const RankTrace*, std::vector<int32_t>> of_trace_;
};

/// A collective of the data axis.
struct Queued {
  double since = 0, seconds = 0;
  int32_t collective = -1;
  double ended = kPending;
};

class StepSimulator {
 public:
  explicit StepSimulator(const Simulation& run)
      : run_(run), ranks_(static_cast<size_t>(run.mesh.ranks())), links_(run.links.size() * lanes()) {
    for (int32_t rank = 0; rank < run.mesh.ranks(); ++rank) {
      Rank& r = of(rank);
      r.trace = &run.trace(rank);
      r.calls = &calls_.of(*r.trace);
      if (run.pace) r.pace = run.pace(rank);
      ready_.push_back(rank);
    }
    for (auto& groups : groups_) groups.resize(ranks_.size());
  }

  SimulatedStep made() {
    while (!ready_.empty()) {
      const int32_t rank = ready_.front();
      ready_.pop_front();
      go_on(rank);
    }
    SimulatedStep step;
    for (const Rank& r : ranks_) {
      if (r.at < r.trace->events.size()) fail_stuck();
      step.ranks.push_back({std::max(r.now, r.free), r.computed, r.waited});
    }
    return step;
  }

 private:
  struct Rank {
    const RankTrace* trace = nullptr;
    const std::vector<int32_t>* calls = nullptr;  // by index in RankTrace::collectives
    RankPace pace;
    size_t at = 0;
    double now = 0, computed = 0, waited = 0;
    std::vector<Queued> queue;    // collectives of the data axis, in order
    size_t made = 0;              // of them
    double free = 0;              // when the last of these ended
    bool is_first_there = false;  // the first one that is not made has arrived at its group
    bool is_meeting = false;      // in a collective of another axis, which ends at `meeting`
    double meeting = kPending;
  };

  Rank& of(int32_t rank) { return ranks_[static_cast<size_t>(rank)]; }
  size_t lanes() const { return static_cast<size_t>(run_.mesh.data) * static_cast<size_t>(run_.mesh.tensor); }
  SimulatedLink& link_at(int32_t link, int32_t rank) {
    return links_[static_cast<size_t>(link) * lanes() + static_cast<size_t>(rank) % lanes()];
  }
  Group& group_of(int32_t rank, MeshAxis axis) {
    const int32_t first = axis == MeshAxis::all ? 0 : color_along(run_.mesh, axis, rank);
    return groups_[static_cast<size_t>(axis)][static_cast<size_t>(first)];
  }

  void wait_until(int32_t rank, const TraceEvent& event, double when) {
    Rank& r = of(rank);
    if (when <= r.now) return;
    if (run_.watch) run_.watch({rank, event.kind, event.section, event.micro_batch, r.now, when});
    r.waited += when - r.now;
    r.now = when;
  }

  /// Until the rank must wait for others.
  void go_on(int32_t rank) {
    Rank& r = of(rank);
    while (r.at < r.trace->events.size() && is_over(rank, r.trace->events[r.at])) ++r.at;
  }

  bool is_over(int32_t rank, const TraceEvent& event) {
    switch (event.kind) {
      case EventKind::compute:
        compute(rank, event);
        return true;
      case EventKind::post:
        enqueue(rank, event);
        return true;
      case EventKind::await:
        return is_made(rank, event);
      case EventKind::exchange:
        if (event.axis != MeshAxis::data) return meets(rank, event);
        if (of(rank).queue.size() == static_cast<size_t>(event.number)) enqueue(rank, event);
        return is_made(rank, event);
      case EventKind::send:
        send(rank, event);
        return true;
      case EventKind::release:
        wait_until(rank, event, link_at(event.link, rank).messages[static_cast<size_t>(event.number)]);
        return true;
      case EventKind::receive:
        return receives(rank, event);
    }
    return true;
  }

  void compute(int32_t rank, const TraceEvent& event) {
    Rank& r = of(rank);
    const double seconds = event.seconds * r.pace.computing, began = r.now;
    r.now += seconds;
    r.computed += seconds;
    if (run_.watch && seconds > 0) run_.watch({rank, event.kind, event.section, event.micro_batch, began, r.now});
  }

  void enqueue(int32_t rank, const TraceEvent& event) {
    of(rank).queue.push_back({of(rank).now, event.seconds * of(rank).pace.exchange, event.collective});
    arrive_first(rank);
  }

  bool is_made(int32_t rank, const TraceEvent& event) {
    const Rank& r = of(rank);
    if (r.made <= static_cast<size_t>(event.number)) return false;
    wait_until(rank, event, r.queue[static_cast<size_t>(event.number)].ended);
    return true;
  }

  void arrive_first(int32_t rank) {
    Rank& r = of(rank);
    if (r.is_first_there || r.made == r.queue.size()) return;
    r.is_first_there = true;
    const Queued& first = r.queue[r.made];
    arrive(rank, MeshAxis::data, first.collective, std::max(first.since, r.free), first.seconds);
  }

  bool meets(int32_t rank, const TraceEvent& event) {
    Rank& r = of(rank);
    if (!r.is_meeting) {
      r.is_meeting = true;
      r.meeting = kPending;
      arrive(rank, event.axis, event.collective, r.now, event.seconds * r.pace.exchange);
    }
    if (r.meeting == kPending) return false;
    r.is_meeting = false;
    if (run_.watch_collective) run_.watch_collective({rank, event.collective, r.now, r.meeting});
    wait_until(rank, event, r.meeting);
    return true;
  }

  void arrive(int32_t rank, MeshAxis axis, int32_t collective, double when, double seconds) {
    Group& group = group_of(rank, axis);
    const int32_t call = collective < 0 ? -1 : (*of(rank).calls)[static_cast<size_t>(collective)];
    if (group.members.empty()) group.call = call;
    if (call != group.call) fail_differing(group, rank, call);
    group.begins = std::max(group.begins, when);
    group.longest = std::max(group.longest, seconds);
    group.members.push_back(rank);
    if (group.members.size() < static_cast<size_t>(run_.mesh.size(axis))) return;
    const double end = group.begins + group.longest;
    std::vector<int32_t> members;
    std::swap(members, group.members);
    group.begins = group.longest = 0;
    for (const int32_t member : members) {
      Rank& r = of(member);
      if (axis == MeshAxis::data) {
        Queued& first = r.queue[r.made++];
        if (run_.watch_collective) run_.watch_collective({member, first.collective, std::max(first.since, r.free), end});
        first.ended = r.free = end;
        r.is_first_there = false;
      } else {
        r.meeting = end;
      }
      if (member != rank) ready_.push_back(member);
    }
    for (const int32_t member : members)
      if (axis == MeshAxis::data) arrive_first(member);
  }

  void send(int32_t rank, const TraceEvent& event) {
    SimulatedLink& link = link_at(event.link, rank);
    const double before = link.messages.empty() ? 0 : link.messages.back();
    const double left = std::max(of(rank).now, before) + event.seconds * of(rank).pace.exchange * of(rank).pace.messages;
    link.messages.push_back(left);
    if (link.waiting >= 0) ready_.push_back(link.waiting);
    link.waiting = -1;
  }

  bool receives(int32_t rank, const TraceEvent& event) {
    SimulatedLink& link = link_at(event.link, rank);
    if (link.received == link.messages.size()) {
      link.waiting = rank;
      return false;
    }
    wait_until(rank, event, link.messages[link.received++]);
    return true;
  }

  [[noreturn]] void fail_differing(const Group& group, int32_t rank, int32_t call) const {
    fail(Code::internal, text("simulation: the ranks of a group make different collectives: rank ", group.members.front(), " makes ",
                              calls_.text_of(group.call), ", rank ", rank, " makes ", calls_.text_of(call)));
  }

  [[noreturn]] void fail_stuck() {
    std::string waiting;
    constexpr std::array<std::string_view, 7> kWords = {"computing", "a collective", "a post",   "a posted collective",
                                                        "a send",    "a release",    "a message"};
    for (int32_t rank = 0, shown = 0; rank < run_.mesh.ranks() && shown < 8; ++rank) {
      const Rank& r = of(rank);
      if (r.at == r.trace->events.size()) continue;
      const TraceEvent& event = r.trace->events[r.at];
      waiting += text(waiting.empty() ? "" : "; ", "rank ", rank, " waits for ", kWords[static_cast<size_t>(event.kind)]);
      if (event.kind == EventKind::receive) waiting += text(" on link ", event.link);
      ++shown;
    }
    fail(Code::internal, "simulation: no rank can go on: " + waiting);
  }

  const Simulation& run_;
  CallNumbers calls_;
  std::vector<Rank> ranks_;
  std::vector<SimulatedLink> links_;                      // by link of the program, then lane
  std::array<std::vector<Group>, kMeshAxes + 1> groups_;  // by axis and the first of the group's ranks
  std::deque<int32_t> ready_;
};

}  // namespace

double SimulatedStep::seconds() const {
  double last = 0;
  for (const SimulatedRank& rank : ranks) last = std::max(last, rank.ended);
  return last;
}

double SimulatedStep::idle() const {
  const double all = seconds();
  double computed = 0;
  for (const SimulatedRank& rank : ranks) computed += rank.computed;
  return all > 0 ? 1 - computed / (all * static_cast<double>(ranks.size())) : 0;
}

SimulatedStep simulate(const Simulation& run) { return StepSimulator(run).made(); }

}  // namespace st
