#include "shadow_memory.h"

#include <map>
#include <set>
#include <tuple>

#include "ir/cuts.h"
#include "ir/print.h"

namespace st {
namespace {

/// Identity of a value in memory: new with every kernel's write, preserved by views and copies.
using Content = int64_t;

class Shadow {
 public:
  Shadow(const Plan& plan, const StepOrder& order)
      : plan_(plan),
        order_(order),
        slots_(static_cast<size_t>(plan.micro_batches), std::vector<Content>(plan.program.slots.size())),
        values_(plan.program.sections.size()) {
    for (int32_t a = 0; a < kArenas; ++a) {
      cells_.emplace_back(static_cast<size_t>(plan.memory.bytes[static_cast<size_t>(a)] / kAlignment), 0);
      extent_.push_back(0);
    }
    for (const Instruction& i : plan.instructions) {
      listed_.insert({i.section, i.node, i.micro_batch});
      if (i.is_early()) early_.insert({i.section, i.node, i.micro_batch});
    }
    for (size_t s = 0; s < plan.program.slots.size(); ++s) {
      content_of_slot(s) = next_++;
      const Role role = plan.program.slots[s].role;
      if (role == Role::parameter || role == Role::optimizer || role == Role::control)
        write(place_of_slot(s), bytes_of_slot(s), content_of_slot(s), "a slot");
    }
  }

  std::vector<std::string> run() {
    for (int step = 0; step < 2; ++step) {
      for (const SectionRun& run : order_) {
        micro_batch_ = run.micro_batch;
        run_early(run);
        run_section(static_cast<size_t>(run.section), run.micro_batch);
      }
      for (size_t s = 0; s < plan_.program.slots.size(); ++s)
        if (plan_.program.slots[s].role == Role::output)
          read(place_of_slot(s), bytes_of_slot(s), content_of_slot(s), plan_.program.slots[s].name);
    }
    for (int32_t a = 0; a < kArenas; ++a) {
      const auto arena = static_cast<Arena>(a);
      if (arena == Arena::activations || arena == Arena::stash)
        expect(extent_[static_cast<size_t>(a)] == plan_.memory.of(arena),
               text(name_of(arena), ": ", plan_.memory.of(arena), " bytes planned, ", extent_[static_cast<size_t>(a)], " used"));
    }
    return faults_;
  }

 private:
  Place place_of_slot(size_t s) const { return plan_.memory.of_micro_batch(plan_.memory.slots[s], micro_batch_); }
  Content& content_of_slot(size_t s) {
    return slots_[plan_.memory.slots[s].arena == Arena::stash ? static_cast<size_t>(micro_batch_) : 0][s];
  }
  int64_t bytes_of_slot(size_t s) const { return own_type(plan_.program, plan_.program.slots[s]).bytes(); }
  void expect(bool holds, const std::string& fault) {
    if (!holds) faults_.push_back(fault);
  }

  bool runs(When when, int64_t k) const {
    return when == When::every || (when == When::first && k == 0) || (when == When::rest && k > 0) ||
           (when == When::last && k + 1 == plan_.micro_batches);
  }

  /// What other sections make of weights before this run.
  void run_early(const SectionRun& run) {
    for (const Instruction& i : plan_.instructions) {
      if (!i.is_early() || i.within != run.section || i.micro_batch != run.micro_batch) continue;
      const auto s = static_cast<size_t>(i.section);
      const Graph& graph = plan_.program.sections[s].graph;
      values_[s].resize(graph.nodes.size());
      for (int32_t n = 0; n < i.node; ++n)
        if (is_view(graph[n].op) && is_of_weights(graph, n)) run_node(s, n, i.micro_batch);
      run_node(s, i.node, i.micro_batch);
      for (int32_t n = i.node + 1; n < graph.size(); ++n)  // made in place
        if (graph[n].op == Op::store && graph[n].in[0].node == i.node && !listed_.contains({i.section, n, i.micro_batch}))
          run_node(s, n, i.micro_batch);
    }
  }
  bool is_of_weights(const Graph& graph, int32_t view) const {
    const Node* const load = graph.load_behind({view, 0});
    if (load == nullptr) return false;
    const Role role = plan_.program.slot(load->reads[0]).role;
    return role == Role::parameter || role == Role::working;
  }

  void run_section(size_t s, int64_t k) {
    const Graph& graph = plan_.program.sections[s].graph;
    auto& contents = values_[s];
    contents.resize(graph.nodes.size());
    for (int32_t n = 0; n < graph.size(); ++n)
      if (runs(graph[n].when, k) && !early_.contains({static_cast<int32_t>(s), n, static_cast<int32_t>(k)})) run_node(s, n, k);
  }

  void run_node(size_t s, int32_t n, int64_t k) {
    const Section& section = plan_.program.sections[s];
    const Node& node = section.graph[n];
    where_ = text(name_of(section.phase), " ", print(plan_.program, section, n));
    const bool listed = listed_.contains({static_cast<int32_t>(s), n, static_cast<int32_t>(k)});
    auto& out = values_[s][static_cast<size_t>(n)];
    out.assign(node.out.size(), 0);

    if (node.op == Op::load || node.op == Op::reshape) {
      expect(!listed, "a view is in the instructions");
      const Place here = place(s, {n, 0});
      const Place source = node.op == Op::load ? place_of_slot(static_cast<size_t>(node.reads[0])) : place(s, node.in[0]);
      expect(here == source || node.out[0].bytes() == 0, "a view does not lie where its source does");
      out[0] = node.op == Op::load ? content_of_slot(static_cast<size_t>(node.reads[0])) : content(s, node.in[0]);
      return;
    }
    for (const Value v : node.in) read(place(s, v), section.graph.type(v).bytes(), content(s, v), text("operand %", v.node));
    if (node.op == Op::store) {
      const auto slot = static_cast<size_t>(node.writes[0]);
      const bool in_place = place(s, node.in[0]) == place_of_slot(slot) && place_of_slot(slot).arena != Arena::host;
      expect(in_place != listed, "a store is listed although its value is made in place, or left out although it is not");
      content_of_slot(slot) = content(s, node.in[0]);
      if (!in_place) write(place_of_slot(slot), bytes_of_slot(slot), content_of_slot(slot), "slot");
      return;
    }
    expect(listed, "a node with a kernel is not in the instructions");
    for (const SlotId slot : node.reads)
      read(place_of_slot(static_cast<size_t>(slot)), bytes_of_slot(static_cast<size_t>(slot)), content_of_slot(static_cast<size_t>(slot)),
           "slot");
    if (node.op == Op::accumulate) {
      const auto slot = static_cast<size_t>(node.writes[0]);
      read(place_of_slot(slot), bytes_of_slot(slot), content_of_slot(slot), "the sum so far");
    }
    check_overlap(s, n);
    for (size_t i = 0; i < node.out.size(); ++i) {
      out[i] = next_++;
      write(place(s, {n, static_cast<int32_t>(i)}), node.out[i].bytes(), out[i], "output");
    }
    for (const SlotId id : node.writes) {
      const auto slot = static_cast<size_t>(id);
      content_of_slot(slot) = next_++;
      write(place_of_slot(slot), bytes_of_slot(slot), content_of_slot(slot), "slot");
    }
  }

  /// The kernels' contract: outputs do not overlap inputs or each other, except that an elementwise output may be exactly an input.
  void check_overlap(size_t s, int32_t n) {
    const Graph& graph = plan_.program.sections[s].graph;
    const Node& node = graph[n];
    const auto overlap = [](const Place& a, int64_t a_bytes, const Place& b, int64_t b_bytes) {
      return a.arena == b.arena && a.arena != Arena::host && a_bytes > 0 && b_bytes > 0 && a.offset < b.offset + b_bytes &&
             b.offset < a.offset + a_bytes;
    };
    for (int32_t i = 0; i < static_cast<int32_t>(node.out.size()); ++i) {
      const Place out = place(s, {n, i});
      const Type& type = node.out[static_cast<size_t>(i)];
      for (const Value v : node.in) {
        if (!overlap(out, type.bytes(), place(s, v), graph.type(v).bytes())) continue;
        const bool exact = out == place(s, v) && type.dtype == graph.type(v).dtype && type.shape == graph.type(v).shape;
        expect(info_of(node.op).elementwise && exact, text(where_, ": writes over its operand %", v.node));
      }
      for (int32_t j = 0; j < i; ++j)
        expect(!overlap(out, type.bytes(), place(s, {n, j}), node.out[static_cast<size_t>(j)].bytes()),
               text(where_, ": two outputs overlap"));
    }
  }

  Place place(size_t s, Value v) const {
    return plan_.memory.of_micro_batch(plan_.memory.values[s][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)], micro_batch_);
  }
  Content content(size_t s, Value v) const { return values_[s][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; }

  void write(const Place& at, int64_t bytes, Content content, const std::string& what) {
    if (bytes == 0 || !inside(at, bytes, what)) return;
    auto& cells = cells_[static_cast<size_t>(at.arena)];
    for (int64_t cell = at.offset / kAlignment; cell < align_up(at.offset + bytes) / kAlignment; ++cell)
      cells[static_cast<size_t>(cell)] = content;
    auto& extent = extent_[static_cast<size_t>(at.arena)];
    extent = std::max(extent, align_up(at.offset + bytes));
  }

  void read(const Place& at, int64_t bytes, Content content, const std::string& what) {
    if (bytes == 0 || at.arena == Arena::host || !inside(at, bytes, what)) return;
    const auto& cells = cells_[static_cast<size_t>(at.arena)];
    for (int64_t cell = at.offset / kAlignment; cell < align_up(at.offset + bytes) / kAlignment; ++cell)
      if (cells[static_cast<size_t>(cell)] != content)
        return expect(false, text(where_, ": ", what, " was overwritten before it was read"));
  }

  bool inside(const Place& at, int64_t bytes, const std::string& what) {
    const bool holds =
        at.arena != Arena::host && at.offset >= 0 && at.offset % kAlignment == 0 && at.offset + bytes <= plan_.memory.of(at.arena);
    expect(holds, text(where_, ": ", what, " of ", bytes, " bytes lies at ", at.offset, " of ", name_of(at.arena)));
    return holds;
  }

  const Plan& plan_;
  std::vector<std::vector<Content>> cells_;  // by arena
  std::vector<int64_t> extent_;
  std::set<std::tuple<int32_t, int32_t, int32_t>> listed_, early_;  // section, node, micro-batch
  const StepOrder& order_;
  int32_t micro_batch_ = 0;                                // of the section that runs
  std::vector<std::vector<Content>> slots_;                // by micro-batch (0 outside the stash), slot
  std::vector<std::vector<std::vector<Content>>> values_;  // by section, node, output
  Content next_ = 1;
  std::string where_ = "at the start";
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> faults_of(const Plan& plan, const StepOrder& order) { return Shadow(plan, order).run(); }

std::vector<std::string> faults_of(const Plan& plan) { return faults_of(plan, in_turn(plan.program, plan.micro_batches)); }

}  // namespace st
