#include "passes/autocast.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "ir/rules.h"
#include "passes/rewrite.h"

namespace st {
namespace {

enum class Policy { low, wide, follow, norm };

/// How many ops behind a product are looked through for what its result is read as. A model has few there; a host's graph may have any
/// number, and the stack has an end.
constexpr int kOpsLookedThrough = 100;

Policy policy_of(Op op, bool low_residual) {
  switch (op) {
    case Op::embedding:
      return low_residual ? Policy::low : Policy::follow;
    case Op::layer_norm:
    case Op::rms_norm:
      return low_residual ? Policy::norm : Policy::wide;
    case Op::matmul:
    case Op::linear:
    case Op::attention:
      return Policy::low;
    case Op::exp:
    case Op::log:
    case Op::pow:
    case Op::div:
    case Op::sqrt:
    case Op::softmax:
    case Op::log_softmax:
    case Op::cross_entropy:
    case Op::bce_with_logits:
    case Op::mse:
    case Op::huber:
    case Op::sum:
    case Op::mean:
    case Op::host:
      return Policy::wide;
    default:
      return Policy::follow;
  }
}

class Casting {
 public:
  Casting(Program& program, Section& section, DType low, When when, std::span<const RegionId> wide, bool low_residual)
      : program_(program),
        section_(section),
        rewrite_(program, section),
        low_(low),
        when_(when),
        low_residual_(low_residual),
        readers_(section.graph.nodes.size()) {
    for (size_t r = 0; r < program.regions.size(); ++r) {  // a region comes behind the one around it
      const RegionId around = program.regions[r].parent;
      is_wide_.push_back(std::ranges::find(wide, static_cast<RegionId>(r)) != wide.end() ||
                         (around >= 0 && is_wide_[static_cast<size_t>(around)]));
    }
    for (int32_t n = 0; n < old().size(); ++n)
      for (const Value v : old()[n].in) readers_[static_cast<size_t>(v.node)].push_back(n);
    const auto keep = [&](Value v) {
      if (v) kept_.push_back(v);
    };
    for (const Output& output : program.outputs) {
      keep(output.value);
      keep(output.count);
    }
    keep(program.loss_sum);
    keep(program.loss_count);
  }

  void run() {
    for (int32_t n = 0; n < old().size(); ++n) {
      switch (policy_in(old()[n])) {
        case Policy::low:
          make_low(n);
          break;
        case Policy::wide:
          make(n, DType::f32);
          break;
        case Policy::follow:
          follow(n);
          break;
        case Policy::norm:
          make_norm(n);
          break;
      }
    }
    for (const Value v : kept_) rewrite_.map(v, as(v, old().type(v).dtype, old()[v.node].region));
    rewrite_.finish();
    remove_unused_loads();
  }

 private:
  const Graph& old() const { return rewrite_.old(); }
  Policy policy_in(const Node& node) const {
    return is_wide_[static_cast<size_t>(node.region)] ? Policy::wide : policy_of(node.op, low_residual_);
  }
  bool is_float(Value v) const { return old().type(v).dtype == DType::f32; }
  bool is_low_now(Value v) const { return rewrite_.made().type(rewrite_.at(v)).dtype == low_; }

  /// The node over its operands as they are now, those of fp32 as `type`.
  void make(int32_t n, DType type) {
    Node node = old()[n];
    for (Value& v : node.in) v = is_float(v) ? as(v, type, node.region) : rewrite_.at(v);
    node.out = infer(program_, rewrite_.made(), node);
    rewrite_.replace(n, std::move(node));
  }

  void make_low(int32_t n) {
    const Node& node = old()[n];
    if (!is_float(node.in[0])) return make(n, DType::f32);
    const bool is_product = node.op == Op::matmul || node.op == Op::linear;
    const bool is_wide = is_product && wants_wide({n, 0}, kOpsLookedThrough);
    if (!is_wide) return make(n, low_);
    Node product = node;
    product.attrs.set("result", std::string("f32"));
    for (size_t i = 0; i < product.in.size(); ++i) product.in[i] = as(node.in[i], i < 2 ? low_ : DType::f32, node.region);  // 2: a bias
    product.out = infer(program_, rewrite_.made(), product);
    rewrite_.replace(n, std::move(product));
  }

  /// Takes x as it is; scales it and counts in fp32.
  void make_norm(int32_t n) {
    Node node = old()[n];
    if (!is_float(node.in[0]) || !is_low_now(node.in[0])) return make(n, DType::f32);
    for (size_t i = 0; i < node.in.size(); ++i) node.in[i] = as(node.in[i], i == 0 ? low_ : DType::f32, node.region);
    node.out = infer(program_, rewrite_.made(), node);
    rewrite_.replace(n, std::move(node));
  }

  void follow(int32_t n) {
    const Node& node = old()[n];
    int32_t floats = 0, low = 0, either = 0;
    for (const Value v : node.in) {
      if (!is_float(v)) continue;
      ++floats;
      if (is_low_now(v) || is_bias(node, v))
        ++low;
      else
        either += takes_either(node, v);
    }
    make(n, low > 0 && floats == low + either ? low_ : DType::f32);
  }

  /// Whether an operand takes the type of the others.
  bool takes_either(const Node& node, Value v) const {
    return is_bias(node, v) || (low_residual_ && program_.parameter_of(old()[v.node]) >= 0);
  }

  /// A vector that an add stretches over the rows of the other operand.
  bool is_bias(const Node& node, Value v) const {
    if (node.op != Op::add || v != node.in[1] || old().type(v).shape.rank() != 1) return false;
    return program_.parameter_of(old()[v.node]) >= 0;
  }

  /// Whether everyone who reads a value not yet made takes fp32, so that 16 bits in between would only lose digits.
  bool wants_wide(Value v, int ops) {
    if (ops == 0) return false;
    const auto known = wants_wide_.find(v);
    if (known != wants_wide_.end()) return known->second;
    return wants_wide_[v] = std::ranges::all_of(readers_[static_cast<size_t>(v.node)], [&](int32_t n) { return reads_wide(n, v, ops); });
  }

  bool reads_wide(int32_t n, Value v, int ops) {
    const Node& reader = old()[n];
    if (std::ranges::find(reader.in, v) == reader.in.end()) return true;  // another output of the same node
    const Policy policy = policy_in(reader);
    if (policy != Policy::follow) return policy == Policy::wide;
    const auto is_wide_now = [&](Value other) {
      return other != v && is_float(other) && rewrite_.has(other) && !is_low_now(other) && !takes_either(reader, other);
    };
    if (std::ranges::any_of(reader.in, is_wide_now)) return true;
    for (int32_t i = 0; i < static_cast<int32_t>(reader.out.size()); ++i)
      if (!wants_wide({n, i}, ops - 1)) return false;
    return true;
  }

  /// The new value that stands for v, as `type`; of a parameter its working copy. Each boundary scope casts or loads for itself: a
  /// weight's uses there are a gradient of their own.
  Value as(Value v, DType type, RegionId region) {
    const Value now = rewrite_.at(v);
    if (rewrite_.made().type(now).dtype == type) return now;
    auto [found, is_new] = casts_.emplace(std::tuple{now, type, program_.boundary_of(region)}, Value{});
    if (!is_new) return found->second;
    const SlotId parameter = program_.parameter_of(rewrite_.made()[now.node]);
    const auto typed = [&](Node node) {
      node.out = infer(program_, rewrite_.made(), node);
      return Value{rewrite_.append(std::move(node)), 0};
    };
    const auto cast = [&](When when) {
      return typed({.op = Op::cast,
                    .in = {now},
                    .out = {},
                    .reads = {},
                    .writes = {},
                    .attrs = make_attrs(Op::cast, {{"dtype", std::string(name_of(type))}}),
                    .region = region,
                    .when = when});
    };
    if (parameter < 0) return found->second = cast(When::every);
    auto [copy, is_first] = copies_.emplace(parameter, -1);
    if (is_first) {
      const Value value = cast(when_);
      copy->second = program_.add_slot(
          {.name = free_name(parameter), .type = rewrite_.made().type(value), .role = Role::working, .init = {}, .of = parameter});
      rewrite_.append({.op = Op::store,
                       .in = {value},
                       .out = {},
                       .reads = {},
                       .writes = {copy->second},
                       .attrs = make_attrs(Op::store, {}),
                       .region = region,
                       .when = when_});
    }
    return found->second = typed({.op = Op::load,
                                  .in = {},
                                  .out = {},
                                  .reads = {copy->second},
                                  .writes = {},
                                  .attrs = make_attrs(Op::load, {}),
                                  .region = region});
  }

  /// A tied weight was loaded in several scopes; only the first of these loads makes its working copy.
  void remove_unused_loads() {
    const auto uses = uses_of(program_, section_);
    const auto is_unused = [&](const Graph& graph, int32_t n) {
      return graph[n].op == Op::load && copies_.contains(graph[n].reads[0]) && uses[static_cast<size_t>(n)][0] == 0;
    };
    Rewrite rest(program_, section_);
    for (int32_t n = 0; n < rest.old().size(); ++n)
      if (!is_unused(rest.old(), n)) rest.keep(n);
    rest.finish();
  }

  std::string free_name(SlotId parameter) const { return st::free_name(program_, text(name_of(low_), ".", program_.slot(parameter).name)); }

  Program& program_;
  Section& section_;
  Rewrite rewrite_;
  DType low_;
  When when_;
  bool low_residual_;
  std::vector<bool> is_wide_;                  // by region
  std::vector<std::vector<int32_t>> readers_;  // of a node's outputs
  std::vector<Value> kept_;                    // outputs and loss: they keep their types
  std::map<Value, bool> wants_wide_;
  std::map<std::tuple<Value, DType, RegionId>, Value> casts_;
  std::map<SlotId, SlotId> copies_;  // by parameter
};

}  // namespace

void autocast(Program& program, DType low, When when, std::span<const RegionId> wide, DType residual) {
  check(residual == DType::f32 || residual == low, "autocast: residual must be f32 or ", low, ", got ", residual);
  if (low == DType::f32) return;
  Casting(program, *program.find(Phase::forward), low, when, wide, residual == low).run();
}

}  // namespace st
