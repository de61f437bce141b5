#include "passes/gradient_buckets.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "ir/cuts.h"
#include "passes/gradient_slots.h"
#include "passes/rewrite.h"

namespace st {
namespace {

/// The gradients of the backward section, exchanged in the order in which it makes them.
class Buckets {
 public:
  Buckets(Program& program, Section& section, Reduce reduce, int64_t bucket_bytes, Keep keep, DType dtype)
      : program_(program), rewrite_(program, section), bucket_bytes_(bucket_bytes), dtype_(dtype) {
    const bool adds_up = std::ranges::any_of(section.graph.nodes, [&](const Node& node) { return is_gradient(node, Op::accumulate); });
    const bool by_micro_batch = adds_up && reduce == Reduce::micro;
    at_once_ = by_micro_batch || (!adds_up && (keep == Keep::adding || dtype != DType::f32));
    shrinks_ = at_once_ && keep != Keep::whole;
    gathers_ = keep == Keep::whole;
    last_write_ = adds_up ? Op::accumulate : Op::store;
    first_ = by_micro_batch ? When::first : adds_up ? When::last : When::every;
    rest_ = by_micro_batch;
  }

  void run() {
    const std::vector<bool> is_gone = replaced();
    for (int32_t n = 0; n < rewrite_.old().size(); ++n) {
      const Node& node = rewrite_.old()[n];
      if (!is_gone[static_cast<size_t>(n)]) rewrite_.keep(n);
      if (is_gradient(node, last_write_)) add(node);
    }
    exchange();
    rewrite_.finish();
  }

 private:
  bool is_gradient(const Node& node, Op op) const { return node.op == op && program_.slot(node.writes[0]).role == Role::gradient; }

  bool is_rounded(const Node& node) const {
    return dtype_ != DType::f32 && node.op == Op::cast && rewrite_.old().type(node.in[0]).dtype == dtype_;
  }

  /// Whether exchanges replace a node: writes of gradients, and casts of rounded ones back to f32 that nothing else reads.
  std::vector<bool> replaced() const {
    std::vector<bool> is_gone(rewrite_.old().nodes.size(), at_once_);
    for (int32_t n = rewrite_.old().size() - 1; n >= 0; --n) {
      const Node& node = rewrite_.old()[n];
      const bool may_go = is_gradient(node, Op::store) || is_gradient(node, Op::accumulate) || is_rounded(node);
      if (is_gone[static_cast<size_t>(n)] && may_go) continue;
      is_gone[static_cast<size_t>(n)] = false;
      for (const Value v : node.in) is_gone[static_cast<size_t>(v.node)] = false;
    }
    return is_gone;
  }

  void add(const Node& write) {
    const SlotId gradient = write.writes[0];
    const int64_t bytes = program_.slot(gradient).type.shape.elements() * bytes_of(dtype_);
    if (bytes_ + bytes > bucket_bytes_) exchange();
    gradients_.push_back(gradient);
    values_.push_back(at_once_ ? as_sent(write.in[0]) : append_cast(rewrite_, load(gradient), dtype_, write.region, first_));
    bytes_ += bytes;
    if (bytes_ >= bucket_bytes_) exchange();
  }

  Value as_sent(Value gradient) {
    const Node& node = rewrite_.old()[gradient.node];
    return is_rounded(node) ? rewrite_.at(node.in[0]) : append_cast(rewrite_, rewrite_.at(gradient), dtype_, node.region);
  }

  Value load(SlotId slot) {
    return {rewrite_.append({.op = Op::load,
                             .in = {},
                             .out = {own_type(program_, program_.slot(slot))},
                             .reads = {slot},
                             .writes = {},
                             .attrs = {},
                             .when = first_}),
            0};
  }

  void exchange() {
    if (gradients_.empty()) return;
    Ints parameters;
    std::vector<SlotId> into;  // this rank's shards
    for (const SlotId gradient : gradients_) {
      const SlotId parameter = program_.slot(gradient).of;
      parameters.push_back(parameter);
      if (shrinks_) make_flat(program_, gradient, parameter);
      if (has_shard(program_, parameter)) into.push_back(gradient);
    }
    const auto reduce_scatter = [&](When when, bool adds) {
      rewrite_.append({.op = Op::reduce_scatter,
                       .in = values_,
                       .out = {},
                       .reads = {},
                       .writes = into,
                       .attrs = make_attrs(Op::reduce_scatter, {{"parameters", parameters}, {"adds", adds}}),
                       .when = when});
    };
    reduce_scatter(first_, false);
    if (rest_) reduce_scatter(When::rest, true);
    gather();
    gradients_.clear();
    values_.clear();
    bytes_ = 0;
  }

  /// When the sums are whole: with the last micro-batch.
  void gather() {
    std::vector<SlotId> wholes;
    if (gathers_)
      std::ranges::copy_if(gradients_, std::back_inserter(wholes), [&](SlotId gradient) { return is_of_one_use(program_, gradient); });
    if (wholes.empty()) return;
    rewrite_.append({.op = Op::all_gather,
                     .in = {},
                     .out = {},
                     .reads = {},
                     .writes = wholes,
                     .attrs = make_attrs(Op::all_gather, {}),
                     .when = rest_ ? When::last : first_});
  }

  Program& program_;
  Rewrite rewrite_;
  int64_t bucket_bytes_;
  DType dtype_;                // on the wire
  bool at_once_ = false;       // as they are made; else what lies in the gradients' slots is exchanged, when it is complete
  bool shrinks_ = false;       // the gradients' slots, to pieces
  bool gathers_ = false;       // the sums, to all ranks
  Op last_write_ = Op::store;  // of a gradient
  When first_ = When::every;   // when the sums are written,
  bool rest_ = false;          // and whether later micro-batches add to them

  std::vector<SlotId> gradients_;  // the bucket that is open
  std::vector<Value> values_;
  int64_t bytes_ = 0;
};

}  // namespace

bool has_backward(const Program& program) {
  return std::ranges::any_of(
      program.sections, [](const Section& section) { return section.phase == Phase::backward || section.phase == Phase::backward_weight; });
}

bool makes_gradients(const Program& program, const Section& section) {
  return section.phase != Phase::update && std::ranges::any_of(section.graph.nodes, [&](const Node& node) {
           return node.op == Op::store && program.slot(node.writes[0]).role == Role::gradient;
         });
}

void exchange_gradients(Program& program, Reduce reduce, int64_t bucket_bytes, Keep keep, DType dtype) {
  for (Section& section : program.sections)
    if (makes_gradients(program, section)) Buckets(program, section, reduce, bucket_bytes, keep, dtype).run();
}

void exchange_loss(Program& program) {
  const auto is_report = [&](const Node& node) {
    return (node.op == Op::store || node.op == Op::accumulate) && program.slot(node.writes[0]).role == Role::report;
  };
  Section* const forward = const_cast<Section*>(program.last_forward());
  if (std::ranges::none_of(forward->graph.nodes, is_report)) return;  // another stage has the loss
  Rewrite rewrite(program, *forward);
  std::vector<Value> terms, later_terms;
  std::vector<SlotId> slots, later_slots;
  for (int32_t n = 0; n < rewrite.old().size(); ++n) {
    const Node& node = rewrite.old()[n];
    if (!is_report(node)) {
      rewrite.keep(n);
    } else if (node.op == Op::accumulate) {
      later_terms.push_back(rewrite.at(node.in[0]));
      later_slots.push_back(node.writes[0]);
    } else {
      terms.push_back(rewrite.at(node.in[0]));
      slots.push_back(node.writes[0]);
    }
  }
  const auto add = [&](When when, bool adds, const std::vector<Value>& of, const std::vector<SlotId>& to) {
    rewrite.append({.op = Op::rank_sums,
                    .in = of,
                    .out = {},
                    .reads = {},
                    .writes = to,
                    .attrs = make_attrs(Op::rank_sums, {{"adds", adds}}),
                    .when = when});
  };
  add(later_slots.empty() ? When::every : When::first, false, terms, slots);
  if (!later_slots.empty()) add(When::rest, true, later_terms, later_slots);
  rewrite.finish();
}

}  // namespace st
