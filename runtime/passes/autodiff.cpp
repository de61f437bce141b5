#include "passes/autodiff.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "passes/gradients.h"

namespace st {
namespace {

/// All uses of one parameter within one boundary scope: one gradient slot.
struct Use {
  SlotId parameter;
  int32_t first_consumer;  // in graph order: complete, and stored, when backward has passed it
  Value gradient;
  SlotId slot = -1;  // where it is stored; none: nothing came
};

class Differentiation final : public Chain {
 public:
  Differentiation(Program& program, int32_t forward, Builder& builder, const std::vector<Value>& roots)
      : Chain(builder), program_(program), forward_(forward) {
    find_needs(roots);
    find_uses();
  }

  void seed_loss() {
    const Value loss = program_.loss_sum;
    check(needs_value(loss), "autodiff: the loss does not depend on any trainable parameter");
    const Type& type = graph().type(loss);
    gradients_[loss] =
        is_scaled() ? b.as(b.scale(scale(), program_.loss_seed), type.dtype) : b.fill(type.shape, program_.loss_seed, type.dtype);
  }

  void seed(std::span<const Seed> seeds) {
    for (const Seed& seed : seeds) {
      if (!needs_value(seed.value)) continue;
      const Value gradient = b.as(scaled(b.load(seed.slot)), gradient_type(seed.value));
      Value& sum = gradients_[seed.value];
      sum = sum ? b.add(sum, gradient) : gradient;
    }
    check(!gradients_.empty(), "autodiff: no output depends on any trainable parameter");
  }

  void run() {
    for (at_ = graph().size() - 1; at_ >= 0; --at_) {
      if (!needs_[static_cast<size_t>(at_)] || graph()[at_].op == Op::load) continue;
      node_ = graph()[at_];  // a copy: recalling its operands appends to the graph that it stands in
      b.set_region(node().region);
      if (has_gradient()) differentiate(*this);
      store_complete_uses();
    }
    name_gradients();
  }

  const Node& node() const override { return node_; }
  Value in(int32_t i) override { return recall(node().in[static_cast<size_t>(i)]); }
  Value out(int32_t i) override { return recall({at_, i}); }
  Value d(int32_t i) override {
    const auto found = gradients_.find({at_, i});
    return found == gradients_.end() ? Value{} : found->second;
  }
  bool needs(int32_t i) const override {
    return i < static_cast<int32_t>(node().in.size()) && needs_value(node().in[static_cast<size_t>(i)]);
  }
  Type in_type(int32_t i) const override { return graph().type(node().in[static_cast<size_t>(i)]); }
  DType gradient_type(int32_t i) const override { return gradient_type(node().in[static_cast<size_t>(i)]); }
  Type out_type(int32_t i) const override { return node().out[static_cast<size_t>(i)]; }

  void give(int32_t i, Value gradient) override {
    if (!needs(i)) return;
    const Value target = node().in[static_cast<size_t>(i)];
    Value& sum = is_parameter(target) ? use_of(target, at_).gradient : gradients_[target];
    const Value typed = b.as(gradient, gradient_type(target));
    sum = sum ? b.add(sum, typed) : typed;
  }

 private:
  bool is_scaled() const { return program_.step.loss_scale >= 0; }
  Value scale() { return b.load(program_.step.loss_scale); }

  /// In fp32 at least: a scale of 65536 is infinite in fp16.
  Value scaled(Value seed) {
    if (!is_scaled()) return seed;
    const DType wide = b.type(seed).dtype == DType::f64 ? DType::f64 : DType::f32;
    return b.mul(b.as(seed, wide), b.as(scale(), wide));
  }

  // Stashing appends stores to the forward graph while we walk it; indices stay valid, references do not.
  Graph& graph() const { return program_.sections[static_cast<size_t>(forward_)].graph; }

  bool needs_value(Value v) const { return needs_[static_cast<size_t>(v.node)] && is_floating(graph().type(v).dtype); }

  DType gradient_type(Value v) const {
    const Node& source = graph()[v.node];
    const DType own = graph().type(v).dtype;
    if (const SlotId parameter = program_.parameter_of(source); parameter >= 0) return slot(parameter).type.dtype;
    if (source.op == Op::tensor_gather || source.op == Op::tensor_share) return gradient_type(source.in[0]);
    const bool is_cast = source.op == Op::cast && (own == DType::bf16 || own == DType::f16);
    return is_cast && graph().type(source.in[0]).dtype == DType::f32 ? DType::f32 : own;
  }

  bool is_parameter(Value v) const { return program_.parameter_of(graph()[v.node]) >= 0; }
  const Slot& slot(SlotId id) const { return program_.slot(id); }

  bool has_gradient() {
    for (int32_t i = 0; i < static_cast<int32_t>(node().out.size()); ++i)
      if (d(i)) return true;
    return false;
  }

  /// A node needs a gradient when a trainable parameter reaches it and it reaches a root.
  void find_needs(const std::vector<Value>& roots) {
    const auto count = static_cast<size_t>(graph().size());
    needs_.assign(count, false);
    std::vector<bool> reaches(count, false);
    for (const Value root : roots) reaches[static_cast<size_t>(root.node)] = true;
    for (int32_t n = graph().size() - 1; n >= 0; --n)
      if (reaches[static_cast<size_t>(n)])
        for (const Value v : graph()[n].in) reaches[static_cast<size_t>(v.node)] = true;
    for (int32_t n = 0; n < graph().size(); ++n) {
      const Node& at = graph()[n];
      bool depends = false;
      if (const SlotId parameter = program_.parameter_of(at); parameter >= 0)
        depends = slot(parameter).trainable && is_floating(slot(parameter).type.dtype);
      for (const Value v : at.in) depends = depends || needs_value(v);
      needs_[static_cast<size_t>(n)] =
          depends && reaches[static_cast<size_t>(n)];  // an op without a gradient is refused when its turn comes
    }
  }

  void find_uses() {
    for (int32_t n = 0; n < graph().size(); ++n) {
      if (!needs_[static_cast<size_t>(n)]) continue;
      for (const Value v : graph()[n].in)
        if (is_parameter(v) && needs_value(v)) {
          const auto key = use_key(v, n);
          if (use_at_.emplace(key, uses_.size()).second) uses_.push_back({key.first, n, {}});
        }
    }
  }

  using UseKey = std::pair<SlotId, RegionId>;
  UseKey use_key(Value parameter, int32_t consumer) const {
    return {program_.parameter_of(graph()[parameter.node]), program_.boundary_of(graph()[consumer].region)};
  }
  Use& use_of(Value parameter, int32_t consumer) { return uses_[use_at_.at(use_key(parameter, consumer))]; }

  void store_complete_uses() {
    auto use = std::ranges::lower_bound(uses_, at_, {}, &Use::first_consumer);
    for (; use != uses_.end() && use->first_consumer == at_; ++use) {
      if (!use->gradient) continue;
      use->slot = program_.add_slot({.name = text("gradient of use ", at_, " of ", parameter_name(use->parameter)),
                                     .type = b.type(use->gradient),
                                     .role = Role::gradient,
                                     .init = {},
                                     .of = use->parameter});
      b.store(use->gradient, use->slot);
    }
  }

  /// Only now is it known which uses have a gradient: those are counted, in graph order.
  void name_gradients() {
    std::map<SlotId, int> count;
    for (const Use& use : uses_) {
      if (use.slot < 0) continue;
      const int index = count[use.parameter]++;
      const std::string name = text("gradient.", parameter_name(use.parameter), index > 0 ? text(".use", index) : "");
      check(program_.slot_named(name) < 0, "autodiff: the slot name \"", name, "\" is taken; rename the parameter or input");
      program_.rename(use.slot, name);
    }
  }

  const std::string& parameter_name(SlotId parameter) const { return program_.slot(parameter).name; }

  /// A forward value, seen from backward: read again where it lies anyway, made again where that is free, else stashed.
  Value recall(Value v) {
    if (const auto found = recalled_.find(v); found != recalled_.end()) return found->second;
    const Node source = graph()[v.node];
    Value here;
    if (source.op == Op::load) {
      here = b.load(source.reads[0]);
    } else if (source.op == Op::fill) {
      here = b.append(source.op, {}, source.attrs)[0];
    } else if (source.op == Op::reshape) {
      here = b.append(source.op, {recall(source.in[0])}, source.attrs)[0];
    } else if (source.op == Op::tensor_share) {
      here = recall(source.in[0]);
    } else if (source.op == Op::tensor_gather) {  // again: each rank keeps its own rows alone
      here = b.append(source.op, {recall(source.in[0])}, source.attrs)[0];
    } else {
      here = b.load(stash(v));
    }
    recalled_[v] = here;
    return here;
  }

  SlotId stash(Value v) {
    const SlotId slot =
        program_.add_slot({.name = text("stash.", v.node, ".", v.output), .type = graph().type(v), .role = Role::stash, .init = {}});
    Builder forward(program_, forward_);
    forward.set_region(graph()[v.node].region);
    forward.store(v, slot);
    return slot;
  }

  Program& program_;
  int32_t forward_;
  int32_t at_ = 0;
  Node node_{};
  std::vector<bool> needs_;
  std::map<Value, Value> gradients_, recalled_;  // by forward value
  std::vector<Use> uses_;                        // in graph order of the first consumer
  std::map<UseKey, size_t> use_at_;
};

int32_t forward_of(const Program& program) { return static_cast<int32_t>(program.find(Phase::forward) - program.sections.data()); }

Builder open_backward(Program& program) {
  const Section& forward = *program.find(Phase::forward);
  program.sections.push_back({.graph = {}, .phase = Phase::backward, .stage = forward.stage, .chunk = forward.chunk});
  return Builder(program, static_cast<int32_t>(program.sections.size()) - 1);
}

}  // namespace

void autodiff(Program& program) {
  check(static_cast<bool>(program.loss_sum), "autodiff: the program has no loss; mark one with st_graph_loss");
  Builder builder = open_backward(program);
  Differentiation backward(program, forward_of(program), builder, {program.loss_sum});
  backward.seed_loss();
  backward.run();
}

void autodiff(Program& program, std::span<const Seed> seeds) {
  std::vector<Value> roots;
  for (const Seed& seed : seeds) roots.push_back(seed.value);
  Builder builder = open_backward(program);
  Differentiation backward(program, forward_of(program), builder, roots);
  backward.seed(seeds);
  backward.run();
}

}  // namespace st
