#include "passes/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "ir/memory.h"
#include "passes/remove_slots.h"
#include "passes/rewrite.h"
#include "passes/stage_parts.h"

namespace st {
namespace {

int64_t stash_bytes(const Program& program) {
  int64_t sum = 0;
  for (const Slot& slot : program.slots)
    if (slot.role == Role::stash) sum += align_up(slot.type.bytes());
  return sum;
}

class Recomputation {
  static constexpr int32_t kOutside = -1;  // a reader that is no node: an output, the loss

 public:
  Recomputation(Program& program, std::span<const RegionId> scopes)
      : program_(program), forward_(*program.find(Phase::forward)), backward_(*program.find(Phase::backward)) {
    record_.stash_before = stash_bytes(program);
    find_segments(scopes);
    find_stashed();
    find_readers();
    for (const auto& [value, slot] : stashed_)
      if (is_made_again(value)) dropped_.emplace(slot, value);
  }

  RecomputeRecord run() {
    record_.stash_after = record_.stash_before;
    if (!dropped_.empty()) make_again();
    std::erase_if(record_.scopes, [](const RecomputedScope& scope) { return scope.nodes == 0; });
    return std::move(record_);
  }

 private:
  void make_again() {
    for (const auto& [slot, value] : dropped_) segment_of(value)->stash_bytes += align_up(graph().type(value).bytes());
    rewrite_backward();
    rewrite_forward();
    remove_slots(program_, [this](SlotId slot) { return dropped_.contains(slot); });
    record_.stash_after = stash_bytes(program_);
  }

  const Graph& graph() const { return forward_.graph; }
  RecomputedScope* segment_of(Value v) {
    const int32_t segment = segments_[static_cast<size_t>(v.node)];
    return segment < 0 ? nullptr : &record_.scopes[static_cast<size_t>(segment)];
  }
  int32_t segment(Value v) const { return segments_[static_cast<size_t>(v.node)]; }

  /// Finds for each forward node the outermost chosen scope that contains it.
  void find_segments(std::span<const RegionId> scopes) {
    std::vector<int32_t> of_region(program_.regions.size(), -1);
    for (size_t r = 1; r < of_region.size(); ++r) {
      const Region& region = program_.regions[r];
      const int32_t around = region.parent < 0 ? -1 : of_region[static_cast<size_t>(region.parent)];
      const bool is_chosen = std::ranges::find(scopes, static_cast<RegionId>(r)) != scopes.end();
      if (around >= 0 || !is_chosen) {
        of_region[r] = around;
        continue;
      }
      check(region.boundary, "recompute: \"", region.name, "\" is the scope of a layer, not a boundary; choose a boundary scope");
      of_region[r] = static_cast<int32_t>(record_.scopes.size());
      record_.scopes.push_back({.region = static_cast<RegionId>(r), .name = region.name, .cost = {}});
    }
    for (const Node& node : graph().nodes) segments_.push_back(of_region[static_cast<size_t>(node.region)]);
  }

  void find_stashed() {
    for (const Node& node : graph().nodes)
      if (is_stash_store(node)) stashed_.emplace(node.in[0], node.writes[0]);
  }

  bool is_stash_store(const Node& node) const { return node.op == Op::store && program_.slot(node.writes[0]).role == Role::stash; }

  void find_readers() {
    readers_.resize(static_cast<size_t>(graph().size()));
    for (int32_t n = 0; n < graph().size(); ++n) {
      const Node& node = graph()[n];
      if (is_stash_store(node)) continue;
      for (const Value v : node.in) {
        readers_[static_cast<size_t>(v.node)].push_back(n);
        if (node.op != Op::store) find_crossings(n, v);
      }
    }
    const auto is_read_outside = [&](Value v) {
      if (v) readers_[static_cast<size_t>(v.node)].push_back(kOutside);
    };
    for (const Output& output : program_.outputs) {
      is_read_outside(output.value);
      is_read_outside(output.count);
    }
    is_read_outside(program_.loss_sum);
    is_read_outside(program_.loss_count);
  }

  /// A reshape is made wherever it is read, so its reader reads what it is of.
  void find_crossings(int32_t reader, Value v) {
    while (true) {
      if (segments_[static_cast<size_t>(reader)] != segment(v)) crossing_.insert(v);
      if (graph()[v.node].op != Op::reshape) return;
      v = graph()[v.node].in[0];
    }
  }

  bool is_made_again(Value v) const { return segment(v) >= 0 && !crossing_.contains(v) && is_repeatable(v.node); }

  bool is_repeatable(int32_t n) const {
    const Node& node = graph()[n];
    return node.op != Op::host && node.op != Op::fused_cross_entropy && node.op != Op::vocabulary_cross_entropy_backward &&
           node.when == When::every && !may_fuse_otherwise(n);
  }

  /// fuse() joins a product with its bias only where nothing else reads the product; in backward the other readers may not be repeated.
  bool may_fuse_otherwise(int32_t n) const {
    if (graph()[n].op != Op::matmul || readers_[static_cast<size_t>(n)].size() < 2) return false;
    return std::ranges::any_of(readers_[static_cast<size_t>(n)], [&](int32_t reader) {
      if (reader == kOutside) return false;
      const Node& node = graph()[reader];
      return node.op == Op::add && node.in[0].node == n && graph().type(node.in[1]).shape.rank() == 1;
    });
  }

  // --- backward: where a dropped slot was read, the nodes behind it

  void rewrite_backward() {
    Rewrite rewrite(program_, backward_);
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      const Node& node = rewrite.old()[n];
      const auto dropped = node.op == Op::load ? dropped_.find(node.reads[0]) : dropped_.end();
      if (dropped == dropped_.end())
        rewrite.keep(n);
      else
        rewrite.map({n, 0}, again(rewrite, dropped->second));
    }
    rewrite.finish();
  }

  Value again(Rewrite& rewrite, Value v) {
    RecomputedScope& scope = *segment_of(v);
    for (const int32_t n : nodes_behind(v)) {
      Node node = graph()[n];
      for (Value& in : node.in) {
        if (!made_.contains(in)) made_[in] = load_kept(rewrite, in, scope);
        in = made_.at(in);
      }
      scope.cost += cost_of(graph(), graph()[n]);
      if (node.op != Op::load && !is_view(node.op)) ++scope.nodes;
      const auto outputs = static_cast<int32_t>(node.out.size());
      const int32_t index = rewrite.append(std::move(node));
      for (int32_t i = 0; i < outputs; ++i) made_[{n, i}] = {index, i};
    }
    return made_.at(v);
  }

  /// The nodes that must still run again for v, in forward order. Without recursion: a host's chain of ops may be of any length.
  std::set<int32_t> nodes_behind(Value v) const {
    if (made_.contains(v)) return {};
    std::set<int32_t> found = {v.node};
    std::vector<int32_t> pending = {v.node};
    while (!pending.empty()) {
      const int32_t n = pending.back();
      pending.pop_back();
      for (const Value in : graph()[n].in)
        if (!made_.contains(in) && !is_kept(in, segment(v)) && found.insert(in.node).second) pending.push_back(in.node);
    }
    return found;
  }

  /// Whether a scope finds the value in the stash instead of making it.
  bool is_kept(Value v, int32_t for_segment) const {
    if (is_made_anywhere(graph()[v.node])) return false;
    if (segment(v) != for_segment || !is_repeatable(v.node)) return true;
    const auto slot = stashed_.find(v);
    return slot != stashed_.end() && !dropped_.contains(slot->second);
  }

  Value load_kept(Rewrite& rewrite, Value v, RecomputedScope& scope) {
    auto [slot, is_new] = stashed_.emplace(v, -1);
    const Type& type = graph().type(v);
    if (is_new) {
      slot->second = program_.add_slot({.name = unused_name(v), .type = type, .role = Role::stash, .init = {}});
      scope.stash_bytes -= align_up(type.bytes());
      stored_anew_.push_back(v);
    }
    return {rewrite.append({.op = Op::load,
                            .in = {},
                            .out = {type},
                            .reads = {slot->second},
                            .writes = {},
                            .attrs = make_attrs(Op::load, {}),
                            .region = graph()[v.node].region}),
            0};
  }

  /// Slots of the stash have the numbers of nodes in autodiff(); end_tensor_parallel() then gives such a number to another node.
  std::string unused_name(Value v) const {
    std::string name = text("stash.", v.node, ".", v.output);
    while (program_.slot_named(name) >= 0) name += ".again";
    return name;
  }

  // --- forward: what it stores

  void rewrite_forward() {
    Rewrite rewrite(program_, forward_);
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      const Node& node = rewrite.old()[n];
      if (!is_stash_store(node) || !dropped_.contains(node.writes[0])) rewrite.keep(n);
    }
    for (const Value v : stored_anew_)
      rewrite.append({.op = Op::store,
                      .in = {rewrite.at(v)},
                      .out = {},
                      .reads = {},
                      .writes = {stashed_.at(v)},
                      .attrs = make_attrs(Op::store, {}),
                      .region = rewrite.old()[v.node].region});
    rewrite.finish();
  }

  Program& program_;
  Section &forward_, &backward_;
  RecomputeRecord record_;
  std::vector<int32_t> segments_;              // by forward node: index into record_.scopes; -1: none
  std::vector<std::vector<int32_t>> readers_;  // by forward node, but for stores into the stash
  std::set<Value> crossing_;                   // read in another segment than they are made in
  std::map<Value, SlotId> stashed_;
  std::map<SlotId, Value> dropped_;
  std::map<Value, Value> made_;  // in backward, by forward value
  std::vector<Value> stored_anew_;
};

}  // namespace

OpCost RecomputeRecord::cost() const {
  OpCost sum;
  for (const RecomputedScope& scope : scopes) sum += scope.cost;
  return sum;
}

RecomputeRecord recompute(Program& program, std::span<const RegionId> scopes) {
  require(program.find(Phase::forward) != nullptr && program.find(Phase::backward) != nullptr, Code::internal,
          "recompute: there is no backward section; call autodiff() first");
  if (scopes.empty()) {
    RecomputeRecord nothing;
    nothing.stash_before = nothing.stash_after = stash_bytes(program);
    return nothing;
  }
  return Recomputation(program, scopes).run();
}

}  // namespace st
