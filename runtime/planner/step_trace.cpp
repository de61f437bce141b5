#include "planner/step_trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "ir/cuts.h"
#include "plan/accesses.h"
#include "plan/wire_bytes.h"

namespace st {
namespace {

using EventKind = TraceEvent::Kind;

/// The collective that starts an exchange (exec/planned_exchange.h): a long sum of values is a reduction, then a gather of the results, or
/// one collective of the network's own.
const char* call_of(const ExchangePlan& exchange) {
  if (exchange.op == Op::tensor_sum && exchange.is_fast) return "all_reduce";
  const bool reduces = exchange.op == Op::reduce_scatter || exchange.op == Op::tensor_scatter ||
                       (exchange.op == Op::tensor_sum && exchange.elements * bytes_of(exchange.dtype) > kSummedAtOnce);
  return reduces ? "reduce_scatter" : "all_gather";
}

/// The number of this group's ranks in the node that has most of them, and of its neighbours in rank order on other nodes.
int32_t members_in_node(const Mesh& mesh, MeshAxis axis, const Placement& at) {
  const int32_t step = axis == MeshAxis::tensor  ? 1
                       : axis == MeshAxis::data  ? mesh.tensor
                       : axis == MeshAxis::stage ? mesh.tensor * mesh.data
                                                 : 1;
  return std::clamp(at.ranks_per_node / std::max(step, 1), 1, mesh.size(axis));
}

class Tracer {
 public:
  Tracer(const Plan& plan, const TraceTask& task)
      : plan_(plan),
        program_(plan.program),
        micro_batches_(task.micro_batches),
        machine_(task.machine),
        at_(task.at),
        rates_(machine_.rates_for(task.threads, static_cast<int32_t>(std::min<int64_t>(at_.ranks, at_.ranks_per_node)), memory_of(plan))),
        crowd_(crowd(task.threads)) {
    for (const Section& section : program_.sections) {
      trace_.phases.push_back(section.phase);
      trace_.chunks.push_back(section.chunk);
      times_.emplace_back(section.graph.nodes.size(), kUnknown);
    }
    for (const ExchangePlan& exchange : plan_.exchanges) {
      const bool is_message = exchange.link >= 0;
      const int64_t bytes = is_message ? exchange.elements * bytes_of(exchange.dtype) : collective_bytes(program_, exchange);
      trace_.collectives.push_back({call_of(exchange), exchange.label, exchange.dtype, bytes});
    }
    sent_.resize(program_.links.size());
  }

  RankTrace made() {
    for (const Instruction& at : plan_.instructions) append(at);
    if (rates_.step > 0) trace_.events.push_back({.kind = EventKind::compute, .seconds = rates_.step});
    return std::move(trace_);
  }

 private:
  static constexpr double kUnknown = -1;

  /// More busy threads than were measured share the cores.
  double crowd(int32_t threads) const {
    if (machine_.profile.device == "cuda") return 1;
    const double busy = static_cast<double>(std::min<int64_t>(at_.ranks, at_.ranks_per_node)) * threads;
    return std::max(1.0, busy / std::max(machine_.ranks_per_node, 1));
  }

  bool has_rows(const Instruction& at) const { return at.micro_batch * int64_t{program_.mesh.data} + program_.rank < micro_batches_; }
  bool any_has_rows(const Instruction& at) const { return at.micro_batch * int64_t{program_.mesh.data} < micro_batches_; }

  void append(const Instruction& at) {
    using Ranks = Instruction::Ranks;
    if (at.makes == Copy::gathered || at.makes == Copy::lasting) return;
    if (at.ranks == Ranks::with_rows ? !has_rows(at) : at.ranks == Ranks::all_in_round && !any_has_rows(at)) return;
    switch (at.kind) {
      case Instruction::Kind::kernel:
        return compute(at);
      case Instruction::Kind::fetch:  // as if nothing hid it
      case Instruction::Kind::write_back:
        return copy(at);
      case Instruction::Kind::await_copy:
        return;
      case Instruction::Kind::exchange:
      case Instruction::Kind::post:
        return meet(at);
      case Instruction::Kind::await:
        if (const auto posted = posted_.find(at.exchange); posted != posted_.end())
          trace_.events.push_back({.kind = EventKind::await, .number = posted->second});
        return;
      case Instruction::Kind::send:
        return send(at);
      case Instruction::Kind::release:
        return release(at);
      case Instruction::Kind::receive:
        trace_.events.push_back({.kind = EventKind::receive, .link = exchange(at).link});
        return;
    }
  }

  const ExchangePlan& exchange(const Instruction& at) const { return plan_.exchanges[static_cast<size_t>(at.exchange)]; }

  void compute(const Instruction& at) {
    double& seconds = times_[static_cast<size_t>(at.section)][static_cast<size_t>(at.node)];
    if (seconds == kUnknown) seconds = crowd_ * kernel_seconds(at) + transfer_seconds(at);
    add_computing(at, seconds);
  }

  void add_computing(const Instruction& at, double seconds) {
    const int32_t section = at.run();
    TraceEvent* const last = trace_.events.empty() ? nullptr : &trace_.events.back();
    if (last != nullptr && last->kind == EventKind::compute && last->section == section && last->micro_batch == at.micro_batch)
      last->seconds += seconds;
    else
      trace_.events.push_back({.kind = EventKind::compute, .section = section, .micro_batch = at.micro_batch, .seconds = seconds});
  }

  double kernel_seconds(const Instruction& at) const {
    const OpWork work = work_of(plan_, at, micro_batches_);
    const std::string name = rate_name(plan_, at);
    if (const OpRate* const own = rates_.find(name)) return own->seconds(work);
    const size_t point = name.find('.');
    const std::string of_class = work.flops > 0 ? "products" + name.substr(point, name.find('.', point + 1) - point) : "memory";
    const OpRate* rate = rates_.find(of_class);
    if (rate == nullptr) rate = rates_.find("memory");
    require(rate != nullptr, Code::unavailable, "plan: machine ", machine_.name, " has neither a rate of ", name, " nor of ", of_class);
    return rate->seconds(work);
  }

  /// In a file. What is in a host's memory is copied by instructions of the plan.
  bool is_away(Arena arena) const { return plan_.memory.in_file[static_cast<size_t>(arena)]; }

  /// The seconds in which the node's slots that are away come and go back.
  double transfer_seconds(const Instruction& at) const {
    const Graph& graph = program_.sections[static_cast<size_t>(at.section)].graph;
    const Node& node = graph[at.node];
    double bytes = 0;
    for (const auto* slots : {&node.reads, &node.writes})
      for (const SlotId slot : *slots)
        if (is_away(plan_.memory.slots[static_cast<size_t>(slot)].arena))
          bytes += static_cast<double>(access_of(program_, graph, node, slot).type.bytes());
    return bytes > 0 && machine_.to_host.bytes_per_second > 0 ? bytes / machine_.to_host.bytes_per_second : 0;
  }

  void copy(const Instruction& at) {
    double bytes = 0;
    for (const StagedBytes& of : plan_.memory.windows[static_cast<size_t>(at.window)].copies)
      if (at.kind == Instruction::Kind::fetch || of.is_written) bytes += static_cast<double>(of.bytes);
    if (machine_.to_host.bytes_per_second > 0) add_computing(at, bytes / machine_.to_host.bytes_per_second);
  }

  /// By its own rate, if exchanges were measured; else by the link that the group shares.
  double exchange_seconds(const Instruction& at, MeshAxis axis) const {
    return exchange_seconds(at, axis, work_of(plan_, at, micro_batches_));
  }

  double exchange_seconds(const Instruction& at, MeshAxis axis, const OpWork& work) const {
    if (const OpRate* const own = rates_.find(rate_name(plan_, at)); own != nullptr && at_.ranks <= at_.ranks_per_node)
      return crowd_ * own->seconds(work);
    const LinkRate link = link_of_group(machine_, program_.mesh, axis, at_);
    return link.latency + (link.bytes_per_second > 0 ? work.bytes / link.bytes_per_second : 0);
  }

  void meet(const Instruction& at) {
    const MeshAxis axis = exchange(at).axis;
    const bool is_posted = at.kind == Instruction::Kind::post;
    TraceEvent event{.kind = is_posted ? EventKind::post : EventKind::exchange,
                     .axis = axis,
                     .collective = at.exchange,
                     .seconds = exchange_seconds(at, axis)};
    if (axis == MeshAxis::data) event.number = number_++;
    if (is_posted) posted_[at.exchange] = event.number;
    trace_.events.push_back(event);
  }

  void send(const Instruction& at) {
    const int32_t link = exchange(at).link;
    sent_[static_cast<size_t>(link)].push_back({at.exchange, buffer_sent_from(plan_, at)});
    trace_.events.push_back({.kind = EventKind::send,
                             .link = link,
                             .seconds = exchange_seconds(at, MeshAxis::stage),
                             .latency = exchange_seconds(at, MeshAxis::stage, OpWork{})});
  }

  /// The last message that left from the same buffer of the stash.
  void release(const Instruction& at) {
    const ExchangePlan& message = exchange(at);
    const int64_t buffer = buffer_sent_from(plan_, at);
    const auto& sent = sent_[static_cast<size_t>(message.link)];
    for (size_t i = sent.size(); i-- > 0;)
      if (sent[i].exchange == at.exchange && sent[i].buffer == buffer) {
        trace_.events.push_back({.kind = EventKind::release, .link = message.link, .number = static_cast<int32_t>(i)});
        return;
      }
  }

  struct Sent {
    int32_t exchange;
    int64_t buffer;
  };

  const Plan& plan_;
  const Program& program_;
  const int64_t micro_batches_;
  const Machine& machine_;
  const Placement at_;
  const RateSet& rates_;
  const double crowd_;
  RankTrace trace_;
  std::vector<std::vector<double>> times_;  // by section and node
  std::map<int32_t, int32_t> posted_;       // the last post of each exchange
  std::vector<std::vector<Sent>> sent_;     // by link
  int32_t number_ = 0;
};

}  // namespace

double RankTrace::seconds_of(TraceEvent::Kind kind) const {
  double seconds = 0;
  for (const TraceEvent& event : events) seconds += event.kind == kind ? event.seconds : 0;
  return seconds;
}

LinkRate link_of_group(const Machine& machine, const Mesh& mesh, MeshAxis axis, const Placement& at) {
  const int32_t in_node = members_in_node(mesh, axis, at), members = mesh.size(axis);
  const bool is_one_node = axis == MeshAxis::all ? at.ranks <= at.ranks_per_node : in_node >= members;
  if (is_one_node) return machine.in_node;
  const double network = machine.between_nodes.bytes_per_second * in_node;
  const double rate = machine.in_node.bytes_per_second > 0 && in_node > 1 ? std::min(machine.in_node.bytes_per_second, network) : network;
  return {machine.between_nodes.latency, rate};
}

RankTrace trace_of(const Plan& plan, const TraceTask& task) { return Tracer(plan, task).made(); }

}  // namespace st
