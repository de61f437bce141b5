#include "passes/fuse_loss.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "passes/for_inference.h"
#include "passes/remove_slots.h"
#include "passes/rewrite.h"

namespace st {
namespace {

/// A cross_entropy and its gradient, of which nothing else stands in the way of making both at once.
struct FusedLoss {
  int32_t loss = -1, gradient = -1;     // nodes of forward and of backward
  bool is_apart = false;                // of a vocabulary that ranks share: two ops
  SlotId logits = -1, statistics = -1;  // stashed for backward
  Value last;                           // of backward: the gradient, or the cast to 16 bits that alone reads it
  std::set<int32_t> seed;               // the nodes of backward that make dsum
};

class LossFusion {
 public:
  explicit LossFusion(Program& program)
      : program_(program),
        forward_(*program.find(Phase::forward)),
        backward_(*program.find(Phase::backward)),
        forward_uses_(uses_of(program, forward_)),
        backward_uses_(uses_of(program, backward_)) {
    for (const Section* section : {&std::as_const(forward_), &std::as_const(backward_)})
      for (const Node& node : section->graph.nodes)
        for (const SlotId slot : node.reads) ++loads_[slot];
    for (int32_t n = 0; n < forward_.graph.size(); ++n)
      if (forward_.graph[n].op == Op::store) stores_[forward_.graph[n].writes[0]] = n;
  }

  void run() {
    std::vector<FusedLoss> found;
    for (int32_t n = 0; n < backward_.graph.size(); ++n)
      if (const auto fused = fusible(n)) found.push_back(*fused);
    if (found.empty()) return;
    rewrite_forward(found);
    rewrite_backward(found);
    remove_slots(program_, [&](SlotId slot) { return std::ranges::find(found, slot, &FusedLoss::statistics) != found.end(); });
  }

 private:
  std::optional<FusedLoss> fusible(int32_t n) const {
    const Graph& graph = backward_.graph;
    const Node& node = graph[n];
    if (node.op != Op::cross_entropy_backward && node.op != Op::vocabulary_cross_entropy_backward) return {};
    FusedLoss fused;
    fused.gradient = n;
    fused.is_apart = node.op == Op::vocabulary_cross_entropy_backward;
    fused.logits = stashed_only_for(node.in[0]);
    fused.statistics = stashed_only_for(node.in[2]);
    if (fused.logits < 0 || fused.statistics < 0) return {};
    const Value statistics = made_as(fused.statistics);
    const Node& loss = forward_.graph[statistics.node];
    const Op wanted = fused.is_apart ? Op::vocabulary_cross_entropy : Op::cross_entropy;
    if (loss.op != wanted || behind_reshapes(loss.in[0]) != behind_reshapes(made_as(fused.logits))) return {};
    if (statistics.output != (fused.is_apart ? 3 : 2) || uses(forward_uses_, statistics) != 1) return {};
    if (forward_.graph.type(loss.in[0]).dtype != DType::f32) return {};
    fused.loss = statistics.node;
    fused.last = cast_behind({n, 0});
    if (!find_seed(node.in[3], fused.seed)) return {};
    return fused;
  }

  static int32_t uses(const std::vector<std::vector<int32_t>>& of, Value v) {
    return of[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
  }

  /// The stash that a value of backward is loaded from, if that is all it is loaded for; else -1.
  SlotId stashed_only_for(Value v) const {
    const Graph& graph = backward_.graph;
    while (uses(backward_uses_, v) == 1 && graph[v.node].op == Op::reshape) v = graph[v.node].in[0];
    if (uses(backward_uses_, v) != 1 || graph[v.node].op != Op::load) return -1;
    const SlotId slot = graph[v.node].reads[0];
    const bool is_stash = program_.slot(slot).role == Role::stash && stores_.contains(slot);
    return is_stash && loads_.at(slot) == 1 ? slot : -1;
  }

  Value made_as(SlotId slot) const { return forward_.graph[stores_.at(slot)].in[0]; }

  Value behind_reshapes(Value v) const {
    while (forward_.graph[v.node].op == Op::reshape) v = forward_.graph[v.node].in[0];
    return v;
  }

  /// The cast to 16 bits that is the one reader of a gradient, through reshapes; without one the gradient itself.
  Value cast_behind(Value gradient) const {
    const Graph& graph = backward_.graph;
    Value v = gradient;
    for (int32_t n = v.node + 1; n < graph.size() && uses(backward_uses_, v) == 1; ++n) {
      const Node& node = graph[n];
      if (std::ranges::find(node.in, v) == node.in.end()) continue;
      if (node.op != Op::reshape && node.op != Op::cast) break;
      v = {n, 0};
      if (node.op == Op::cast) return is_16_bit(node.out[0].dtype) ? v : gradient;
    }
    return gradient;
  }

  static bool is_16_bit(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

  /// Whether forward can make dsum: of constants and the loss scale, which the host writes before a step. No recursion: a host's chain of
  /// ops may be of any length.
  bool find_seed(Value dsum, std::set<int32_t>& nodes) const {
    std::vector<int32_t> pending = {dsum.node};
    while (!pending.empty()) {
      const int32_t n = pending.back();
      pending.pop_back();
      if (!nodes.insert(n).second) continue;
      const Node& node = backward_.graph[n];
      if (node.op == Op::host || node.op == Op::host_backward || !node.writes.empty()) return false;
      if (node.op == Op::load && node.reads[0] != program_.step.loss_scale) return false;
      for (const Value in : node.in) pending.push_back(in.node);
    }
    return true;
  }

  void rewrite_forward(const std::vector<FusedLoss>& found) {
    Rewrite rewrite(program_, forward_);
    std::vector<Node> stores;
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      const Node& node = rewrite.old()[n];
      const auto of_loss = std::ranges::find(found, n, &FusedLoss::loss);
      if (of_loss != found.end()) {
        stores.push_back(rewrite.old()[stores_.at(of_loss->logits)]);
        stores.back().in = {append_fused(rewrite, *of_loss)};
      } else if (node.op != Op::store || !is_replaced(found, node.writes[0])) {
        rewrite.keep(n);
      }
    }
    for (Node& store : stores) {
      Slot& slot = program_.slot(store.writes[0]);
      slot.type = rewrite.made().type(store.in[0]);
      slot.name += ".gradient";
      rewrite.append(std::move(store));
    }
    rewrite.finish();
  }

  static bool is_replaced(const std::vector<FusedLoss>& found, SlotId slot) {
    return std::ranges::any_of(found, [&](const FusedLoss& fused) { return slot == fused.logits || slot == fused.statistics; });
  }

  /// Gives dlogits in the shape that backward reads them in.
  Value append_fused(Rewrite& rewrite, const FusedLoss& fused) {
    std::map<int32_t, int32_t> seed;  // nodes of backward, made again
    for (const int32_t n : fused.seed) {
      Node node = backward_.graph[n];
      for (Value& in : node.in) in.node = seed.at(in.node);
      seed[n] = rewrite.append(std::move(node));
    }
    const Node& gradient = backward_.graph[fused.gradient];
    const DType result = backward_.graph.type(fused.last).dtype;
    const Value dsum = {seed.at(gradient.in[3].node), gradient.in[3].output};
    const Node& loss = rewrite.old()[fused.loss];
    const Value made = fused.is_apart ? append_gradient(rewrite, fused, dsum, result) : append_both(rewrite, fused, dsum, result);
    const Type& wanted = backward_.graph.type(fused.last);
    if (rewrite.made().type(made) == wanted) return made;
    const Attrs attrs = reshape_attrs(wanted);
    return {rewrite.append(
                {.op = Op::reshape, .in = {made}, .out = {wanted}, .reads = {}, .writes = {}, .attrs = attrs, .region = loss.region}),
            0};
  }

  static Value append_both(Rewrite& rewrite, const FusedLoss& fused, Value dsum, DType result) {
    const Node& loss = rewrite.old()[fused.loss];
    Node node = loss;
    node.op = Op::fused_cross_entropy;
    node.in = {rewrite.at(loss.in[0]), rewrite.at(loss.in[1]), dsum};
    if (loss.in.size() > 2) node.in.push_back(rewrite.at(loss.in[2]));
    node.out[2] = rewrite.made().type(node.in[0]);
    node.out[2].dtype = result;
    node.attrs.set("result", std::string(is_16_bit(result) ? name_of(result) : "same"));
    const int32_t made = rewrite.append(std::move(node));
    rewrite.map({fused.loss, 0}, {made, 0});
    rewrite.map({fused.loss, 1}, {made, 1});
    return {made, 2};
  }

  /// The gradient may lie over the logits, which nothing reads after it.
  Value append_gradient(Rewrite& rewrite, const FusedLoss& fused, Value dsum, DType result) const {
    rewrite.keep(fused.loss);
    const Node& loss = rewrite.old()[fused.loss];
    Node node = backward_.graph[fused.gradient];
    node.in = {rewrite.at(loss.in[0]), rewrite.at(loss.in[1]), rewrite.at({fused.loss, 3}), dsum};
    if (loss.in.size() > 3) node.in.push_back(rewrite.at(loss.in[3]));
    node.out = {rewrite.made().type(node.in[0])};
    node.region = loss.region;
    return append_cast(rewrite, {rewrite.append(std::move(node)), 0}, result, loss.region);
  }

  /// The gradient is loaded where it was made or cast; what made it there is dead.
  void rewrite_backward(const std::vector<FusedLoss>& found) {
    Rewrite rewrite(program_, backward_);
    for (int32_t n = 0; n < rewrite.old().size(); ++n) {
      const auto ends_here = std::ranges::find(found, Value{n, 0}, &FusedLoss::last);
      if (ends_here == found.end()) {
        rewrite.keep(n);
        continue;
      }
      const Node& node = rewrite.old()[n];
      rewrite.map({n, 0}, {rewrite.append({.op = Op::load,
                                           .in = {},
                                           .out = node.out,
                                           .reads = {ends_here->logits},
                                           .writes = {},
                                           .attrs = make_attrs(Op::load, {}),
                                           .region = node.region}),
                           0});
    }
    rewrite.finish();
    drop_dead(program_, backward_);
  }

  Program& program_;
  Section &forward_, &backward_;
  const std::vector<std::vector<int32_t>> forward_uses_, backward_uses_;
  std::map<SlotId, int32_t> loads_, stores_;  // how often a slot is read; where forward stores it
};

}  // namespace

void fuse_loss(Program& program) {
  if (program.find(Phase::forward) != nullptr && program.find(Phase::backward) != nullptr) LossFusion(program).run();
}

}  // namespace st
