#include "plan/plan.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ir/piece_update.h"
#include "plan/buffer_releases.h"
#include "plan/early_weights.h"
#include "plan/state_windows.h"
#include "plan/weight_copies.h"

namespace st {
namespace {

bool runs_in(When when, int64_t micro_batch, int64_t micro_batches) {
  switch (when) {
    case When::every:
      return true;
    case When::first:
      return micro_batch == 0;
    case When::rest:
      return micro_batch > 0;
    case When::last:
      return micro_batch + 1 == micro_batches;
  }
  return false;
}

bool is_made_in_place(const Plan& plan, int32_t section, const Node& node) {
  if (node.op != Op::store) return false;
  const Value v = node.in[0];
  const Place& value = plan.memory.values[static_cast<size_t>(section)][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
  return value.arena != Arena::host && value == plan.memory.slots[static_cast<size_t>(node.writes[0])];
}

/// Appends the instructions of a plan to it.
class Listing {
 public:
  explicit Listing(Plan& plan) : plan_(plan), copies_(weight_copies(plan.program)) {
    for (const Section& section : plan.program.sections) {
      exchanges_.emplace_back(section.graph.nodes.size(), kNone);
      for (const Node& node : section.graph.nodes)
        if (node.op == Op::await) exchange(exchanges_.size() - 1, awaited_by(node)) = kAwaited;
    }
  }

  /// The runs from here on make their early weights now, within the next run. Not of weights in the host's memory: those are made in their
  /// runs, whose windows have them.
  void append_early(std::span<const SectionRun> runs) {
    if (plan_.memory.on_host[static_cast<size_t>(Arena::parameters)]) return;
    is_early_ = early_weights(plan_.program);
    for (const SectionRun& run : runs)
      if (run.micro_batch == 0) append_nodes(run, true, runs.front().section);
  }
  /// `shared`: the sends that the run waits for because of memory that chunks share (buffer_releases.h).
  void append(const SectionRun& run, std::span<const BufferSend> shared) {
    release(run, shared);
    append_nodes(run, false, -1);
  }

 private:
  void append_nodes(const SectionRun& run, bool early, int32_t within) {
    const auto section = static_cast<size_t>(run.section);
    const Graph& graph = plan_.program.sections[section].graph;
    const std::vector<int32_t> windows = early ? std::vector<int32_t>() : windows_of(run);
    for (int32_t n = 0; n < graph.size(); ++n) {
      copy_before(run, n, windows);
      append_node(run, n, early, within);
      copy_after(run, n, windows);
    }
  }

  /// Whether a run has an instruction for a node, early or not.
  bool is_listed(const SectionRun& run, int32_t n) const {
    const Node& node = plan_.program.sections[static_cast<size_t>(run.section)].graph[n];
    return runs_in(node.when, run.micro_batch, plan_.micro_batches) && !is_view(node.op) && !is_made_in_place(plan_, run.section, node);
  }

  void append_node(const SectionRun& run, int32_t n, bool early, int32_t within) {
    const auto section = static_cast<size_t>(run.section);
    const Node& node = plan_.program.sections[section].graph[n];
    const bool is_early = !is_early_.empty() && is_early_[section][static_cast<size_t>(n)];
    if (is_early != early || !is_listed(run, n)) return;
    Instruction it{run.section, n, run.micro_batch};
    it.makes = copies_[section][static_cast<size_t>(n)];
    if (info_of(node.op).exchange) resolve_exchange(it, node);
    it.ranks = ranks_of(plan_.program, plan_.program.sections[section], node, it.makes);
    it.within = within;
    plan_.instructions.push_back(it);
  }

  // Copies of what is in the host's memory. A window's are fetched while the one before it computes.

  const StateWindow& window(int32_t w) const { return plan_.memory.windows[static_cast<size_t>(w)]; }
  /// Those of which the run has a node.
  std::vector<int32_t> windows_of(const SectionRun& run) const {
    std::vector<int32_t> all;
    for (int32_t w = 0; w < std::ssize(plan_.memory.windows); ++w) {
      bool is_used = false;
      for (int32_t n = window(w).begin; n < window(w).end && window(w).section == run.section; ++n) is_used = is_used || is_listed(run, n);
      if (is_used) all.push_back(w);
    }
    return all;
  }
  void append_copy(const SectionRun& run, Instruction::Kind kind, int32_t w) {
    const Section& section = plan_.program.sections[static_cast<size_t>(run.section)];
    const int32_t first = window(w).begin;
    if (kind == Instruction::Kind::fetch && section.graph[first].op == Op::send)
      wait_for({run.section, first}, run);  // the last one may still leave from there
    const Copy makes = copies_[static_cast<size_t>(run.section)][static_cast<size_t>(first)];
    plan_.instructions.push_back({.section = run.section,
                                  .node = first,
                                  .micro_batch = run.micro_batch,
                                  .kind = kind,
                                  .ranks = ranks_of(plan_.program, section, section.graph[first], makes),
                                  .makes = makes,
                                  .window = w});
  }
  /// Neighbours of a run share a room only if a window between them has no node there.
  bool waits_for(int32_t w, int32_t before) const { return follows(window(w), window(before)) || shares_room(window(w), window(before)); }
  bool is_written(int32_t w) const { return std::ranges::any_of(window(w).copies, &StagedBytes::is_written); }
  void copy_before(const SectionRun& run, int32_t n, const std::vector<int32_t>& windows) {
    using Kind = Instruction::Kind;
    if (n == 0 && !windows.empty()) append_copy(run, Kind::fetch, windows.front());
    for (size_t i = 0; i < windows.size(); ++i) {
      if (window(windows[i]).begin != n) continue;
      if (i + 1 < windows.size() && !waits_for(windows[i + 1], windows[i])) append_copy(run, Kind::fetch, windows[i + 1]);
      append_copy(run, Kind::await_copy, windows[i]);
    }
  }
  void copy_after(const SectionRun& run, int32_t n, const std::vector<int32_t>& windows) {
    using Kind = Instruction::Kind;
    for (size_t i = 0; i < windows.size(); ++i) {
      if (window(windows[i]).end != n + 1) continue;
      if (is_written(windows[i])) append_copy(run, Kind::write_back, windows[i]);
      if (i + 1 < windows.size()) {
        if (waits_for(windows[i + 1], windows[i])) append_copy(run, Kind::fetch, windows[i + 1]);
        continue;
      }
      const auto last = std::find_if(windows.rbegin(), windows.rend(), [&](int32_t w) { return is_written(w); });
      if (last != windows.rend()) append_copy(run, Kind::await_copy, *last);  // and with it for all before
    }
  }

  static constexpr int32_t kNone = -1, kAwaited = -2;  // not listed yet

  static int32_t awaited_by(const Node& await) { return static_cast<int32_t>(await.attrs.integer("exchange")); }
  /// Before a section writes again what an earlier micro-batch sent from the same memory, that has left.
  void release(const SectionRun& run, std::span<const BufferSend> shared) {
    const Section& section = plan_.program.sections[static_cast<size_t>(run.section)];
    for (int32_t n = 0; n < section.graph.size() && section.phase != Phase::update; ++n)
      if (section.graph[n].op == Op::send && is_sent_and_written(section.graph, n)) wait_for({run.section, n}, run);
    for (const BufferSend& send : shared) wait_for(send, run);
  }

  void wait_for(const BufferSend& send, const SectionRun& run) {
    plan_.instructions.push_back({.section = send.section,
                                  .node = send.node,
                                  .micro_batch = run.micro_batch,
                                  .exchange = number_of(send.section, send.node),
                                  .kind = Instruction::Kind::release,
                                  .within = send.section == run.section ? -1 : run.section});
  }

  /// Whether what it sends lies in the stash, or in a slot that every run of its section writes: a copy of a weight. Not in memory that
  /// chunks share.
  bool is_sent_and_written(const Graph& graph, int32_t send) const {
    const SlotId sent = graph.slot_behind(graph[send].in[0]);
    const auto writes_it = [&](const Node& node) {
      return node.when == When::every && std::ranges::find(node.writes, sent) != node.writes.end();
    };
    const StashBuffers* const buffers = plan_.memory.buffers_of(plan_.memory.slots[static_cast<size_t>(sent)]);
    return buffers != nullptr ? buffers->begins.empty() : std::ranges::any_of(graph.nodes, writes_it);
  }

  int32_t& exchange(size_t section, int32_t node) { return exchanges_[section][static_cast<size_t>(node)]; }

  void resolve_exchange(Instruction& it, const Node& node) {
    using Kind = Instruction::Kind;
    const auto section = static_cast<size_t>(it.section);
    if (node.op == Op::await) {
      it.kind = Kind::await;
      it.exchange = exchange(section, awaited_by(node));
      return;
    }
    it.exchange = number_of(it.section, it.node);
    it.kind = node.op == Op::send                        ? Kind::send
              : node.op == Op::receive                   ? Kind::receive
              : posts_[static_cast<size_t>(it.exchange)] ? Kind::post
                                                         : Kind::exchange;
  }

  int32_t number_of(int32_t of_section, int32_t n) {
    const auto section = static_cast<size_t>(of_section);
    int32_t& index = exchange(section, n);
    if (index < 0) {
      posts_.push_back(index == kAwaited);
      index = static_cast<int32_t>(plan_.exchanges.size());
      const Graph& graph = plan_.program.sections[section].graph;
      plan_.exchanges.push_back(exchange_of(plan_.program, graph, graph[n]));
    }
    return index;
  }

  Plan& plan_;
  const std::vector<std::vector<Copy>> copies_;
  std::vector<std::vector<int32_t>> exchanges_;  // by section and node: index in plan.exchanges, kNone or kAwaited
  std::vector<bool> posts_;                      // by exchange
  std::vector<std::vector<bool>> is_early_;      // by section and node; empty before append_early()
};

}  // namespace

Instruction::Ranks ranks_of(const Program& program, const Section& section, const Node& node, Copy makes) {
  using Ranks = Instruction::Ranks;
  if (section.phase == Phase::update) return Ranks::all_in_step;
  if (makes == Copy::gathered || node.op == Op::await || node.op == Op::send || node.op == Op::receive) return Ranks::with_rows;
  if (is_of_values(node.op)) return Ranks::with_rows;      // ranks along the tensor axis have the same rows
  if (node.when == When::last) return Ranks::all_in_step;  // a collective, or a cast of a rank's own sum for one
  if (info_of(node.op).exchange) return Ranks::all_in_round;
  if (makes == Copy::none) return Ranks::with_rows;
  const bool gathers_units = std::ranges::find(program.slots, Role::gathered, &Slot::role) != program.slots.end();
  return gathers_units ? Ranks::all_in_round : Ranks::with_rows;  // other ranks gather the copy
}

std::map<std::string, int64_t> products_by_library(const Program& program) {
  std::map<std::string, int64_t> counts;
  for (const Section& section : program.sections)
    for (int32_t n = 0; n < section.graph.size(); ++n) {
      const Attrs& attrs = section.graph[n].attrs;
      if (!attrs.has("library")) continue;
      const std::string& library = attrs.word("library");
      ++counts[library.empty() ? "own" : library];
    }
  return counts;
}

Plan make_plan(Program program, MemoryLayout memory, const StepOrder& order) {
  Plan plan{.program = std::move(program),
            .memory = std::move(memory),
            .micro_batches = micro_batches_of(order),
            .instructions = {},
            .exchanges = {},
            .passes = {},
            .recompute = {}};
  Listing listing(plan);
  const auto is_update = [&](int32_t section) { return plan.program.sections[static_cast<size_t>(section)].phase == Phase::update; };
  const size_t wait = first_wait(plan.program, order);
  const std::vector<std::vector<BufferSend>> releases = buffer_releases(plan.program, plan.memory, order);
  for (const SectionRun& run : order) {
    const auto index = static_cast<size_t>(&run - order.data());
    if (index == wait) listing.append_early(std::span(order).subspan(index));
    listing.append(run, releases[index]);
    if (!is_update(run.section)) plan.begin_of_update = plan.instructions.size();
  }
  const auto is_optimizer = [&](const Instruction& at) {
    return !at.is_copy() && updates_slots(plan.program.sections[static_cast<size_t>(at.section)].graph[at.node].op);
  };
  plan.first_optimizer = static_cast<size_t>(std::ranges::find_if(plan.instructions, is_optimizer) - plan.instructions.begin());
  return plan;
}

size_t Plan::first_of(Phase phase, int64_t micro_batch) const {
  const auto is_first = [&](const Instruction& at) {
    return at.micro_batch == micro_batch && program.sections[static_cast<size_t>(at.run())].phase == phase;
  };
  return static_cast<size_t>(std::ranges::find_if(instructions, is_first) - instructions.begin());
}

bool makes(const Plan& plan, Copy copy) {
  return std::ranges::find(plan.instructions, copy, &Instruction::makes) != plan.instructions.end();
}

}  // namespace st
