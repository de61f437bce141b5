#include "passes/overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/cuts.h"
#include "passes/rewrite.h"

namespace st {
namespace {

bool may_go_on(const Node& node) { return node.op == Op::reduce_scatter || node.op == Op::all_gather; }

/// One section's exchanges, in their order.
class Overlap {
 public:
  Overlap(Program& program, Section& section) : program_(program), rewrite_(program, section) {}

  void run() {
    const Graph& graph = rewrite_.old();
    const int32_t computes_until = last_computing(graph);
    for (int32_t n = 0; n < graph.size(); ++n) {
      const Node& node = graph[n];
      if (may_go_on(node) && n < computes_until && !gathers_copies(program_, node)) {
        if (is_made_here(node)) await_made(node);
        begin(n);
        continue;
      }
      await_before(node);
      rewrite_.keep(n);
    }
    await_first(under_way_.size());
    rewrite_.finish();
  }

 private:
  struct UnderWay {
    int32_t at;                // in the new graph
    const Node* node;          // in the old one
    std::vector<SlotId> uses;  // slots that others may not write, or not use at all where it writes them
    std::vector<SlotId> writes;
  };

  static int32_t last_computing(const Graph& graph) {
    int32_t last = -1;
    for (int32_t n = 0; n < graph.size(); ++n)
      if (!is_view(graph[n].op) && !info_of(graph[n].op).exchange) last = n;
    return last;
  }

  /// Whether it reads what lies in no slot.
  bool is_made_here(const Node& node) const {
    return std::ranges::any_of(node.in, [&](Value v) { return rewrite_.old().slot_behind(v) < 0; });
  }

  void begin(int32_t n) {
    const Node& node = rewrite_.old()[n];
    UnderWay begun{rewrite_.keep(n), &node, {}, {}};
    for (const SlotId slot : node.reads) begun.uses.push_back(slot);
    for (const Value v : node.in)
      if (const SlotId slot = rewrite_.old().slot_behind(v); slot >= 0) begun.uses.push_back(slot);
    for (const SlotId slot : node.writes) begun.writes.push_back(slot);
    under_way_.push_back(std::move(begun));
  }

  /// Exchanges of the same values run in different micro-batches, so only one of them is under way.
  void await_made(const Node& node) {
    size_t count = under_way_.size();
    while (count > 0 && !(is_made_here(*under_way_[count - 1].node) && under_way_[count - 1].node->in != node.in)) --count;
    await_first(count);
  }

  void await_before(const Node& node) {
    if (is_view(node.op) || info_of(node.op).exchange) return;  // exchanges keep their order
    size_t count = under_way_.size();
    while (count > 0 && !disturbs(node, under_way_[count - 1])) --count;
    await_first(count);
  }

  bool disturbs(const Node& node, const UnderWay& exchange) const {
    const auto has = [&](const std::vector<SlotId>& slots, SlotId slot) { return std::ranges::find(slots, slot) != slots.end(); };
    const auto reads = [&](SlotId slot) { return slot >= 0 && has(exchange.writes, slot); };
    return std::ranges::any_of(node.reads, reads) ||
           std::ranges::any_of(node.in, [&](Value v) { return reads(rewrite_.old().slot_behind(v)); }) ||
           std::ranges::any_of(node.writes, [&](SlotId slot) { return has(exchange.writes, slot) || has(exchange.uses, slot); });
  }

  void await_first(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const Node exchange = rewrite_.made()[under_way_[i].at];
      rewrite_.append({.op = Op::await,
                       .in = exchange.in,
                       .out = {},
                       .reads = {},
                       .writes = {},
                       .attrs = make_attrs(Op::await, {{"exchange", int64_t{under_way_[i].at}}}),
                       .when = exchange.when});
    }
    under_way_.erase(under_way_.begin(), under_way_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  const Program& program_;
  Rewrite rewrite_;
  std::vector<UnderWay> under_way_;
};

}  // namespace

void overlap(Program& program) {
  for (Section& section : program.sections)
    if (section.phase != Phase::update) Overlap(program, section).run();
}

}  // namespace st
