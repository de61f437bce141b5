#include "passes/data_parallel.h"

#include <algorithm>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "passes/gradient_slots.h"
#include "passes/rewrite.h"

namespace st {
namespace {

/// The gradients of the backward section, exchanged in the order in which it makes them.
class Buckets {
 public:
  Buckets(Program& program, Section& section, Reduce reduce, int64_t bucket_bytes)
      : program_(program), rewrite_(program, section), bucket_bytes_(bucket_bytes) {
    const bool adds_up = std::ranges::any_of(section.graph.nodes, [&](const Node& node) { return is_gradient(node, Op::accumulate); });
    by_micro_batch_ = adds_up && reduce == Reduce::micro;
    last_write_ = adds_up ? Op::accumulate : Op::store;
    when_ = adds_up ? When::last : When::every;
  }

  void run() {
    for (int32_t n = 0; n < rewrite_.old().size(); ++n) {
      const Node& node = rewrite_.old()[n];
      const bool is_write = is_gradient(node, Op::store) || is_gradient(node, Op::accumulate);
      if (!is_write || !by_micro_batch_) rewrite_.keep(n);
      if (is_write && node.op == last_write_) add(node);
    }
    exchange();
    rewrite_.finish();
  }

 private:
  bool is_gradient(const Node& node, Op op) const {
    return node.op == op && program_.slots[static_cast<size_t>(node.writes[0])].role == Role::gradient;
  }

  void add(const Node& write) {
    const SlotId gradient = write.writes[0];
    gradients_.push_back(gradient);
    values_.push_back(by_micro_batch_ ? rewrite_.at(write.in[0]) : load(gradient));
    bytes_ += program_.slots[static_cast<size_t>(gradient)].type.bytes();
    if (bytes_ >= bucket_bytes_) exchange();
  }

  Value load(SlotId slot) {
    return {rewrite_.append({.op = Op::load,
                             .in = {},
                             .out = {program_.slots[static_cast<size_t>(slot)].type},
                             .reads = {slot},
                             .writes = {},
                             .attrs = {},
                             .when = when_}),
            0};
  }

  void exchange() {
    if (gradients_.empty()) return;
    Ints parameters;
    std::vector<SlotId> parts;
    for (const SlotId gradient : gradients_) {
      const SlotId parameter = program_.slots[static_cast<size_t>(gradient)].of;
      parameters.push_back(parameter);
      if (const SlotId part = part_of(program_, gradient, parameter); part >= 0) parts.push_back(part);
    }
    const auto reduce_scatter = [&](When when, bool adds) {
      rewrite_.append({.op = Op::reduce_scatter,
                       .in = values_,
                       .out = {},
                       .reads = {},
                       .writes = parts,
                       .attrs = make_attrs(Op::reduce_scatter, {{"parameters", parameters}, {"adds", adds}}),
                       .when = when});
    };
    if (by_micro_batch_) {
      reduce_scatter(When::first, false);
      reduce_scatter(When::rest, true);
    } else {
      reduce_scatter(when_, false);
    }
    gradients_.clear();
    values_.clear();
    bytes_ = 0;
  }

  Program& program_;
  Rewrite rewrite_;
  int64_t bucket_bytes_;
  bool by_micro_batch_ = false;  // else what lies in the gradients' slots is exchanged, when it is complete
  Op last_write_ = Op::store;    // of a gradient
  When when_ = When::every;

  std::vector<SlotId> gradients_;  // the bucket that is open
  std::vector<Value> values_;
  int64_t bytes_ = 0;
};

/// Sums and counts of the loss, in each round of micro-batches.
void exchange_loss(Program& program, Section& section) {
  Rewrite rewrite(program, section);
  std::vector<Value> terms;
  std::vector<SlotId> slots;
  bool adds_up = false;
  const auto is_report = [&](const Node& node) {
    return (node.op == Op::store || node.op == Op::accumulate) && program.slots[static_cast<size_t>(node.writes[0])].role == Role::report;
  };
  for (int32_t n = 0; n < rewrite.old().size(); ++n) {
    const Node& node = rewrite.old()[n];
    if (!is_report(node)) {
      rewrite.keep(n);
    } else if (node.op == Op::accumulate) {
      adds_up = true;
    } else {
      terms.push_back(rewrite.at(node.in[0]));
      slots.push_back(node.writes[0]);
    }
  }
  const auto add = [&](When when, bool adds) {
    rewrite.append({.op = Op::rank_sums,
                    .in = terms,
                    .out = {},
                    .reads = {},
                    .writes = slots,
                    .attrs = make_attrs(Op::rank_sums, {{"adds", adds}}),
                    .when = when});
  };
  add(adds_up ? When::first : When::every, false);
  if (adds_up) add(When::rest, true);
  rewrite.finish();
}

/// In a section of its own: what the update begins with.
void gather(Program& program) {
  const std::vector<std::vector<SlotId>> gradients = gradient_slots(program);
  std::vector<SlotId> wholes;
  program.sections.push_back({.graph = {}, .phase = Phase::update});
  Builder b(program, static_cast<int32_t>(program.sections.size()) - 1);
  for (const std::vector<SlotId>& uses : gradients) {
    const SlotId parameter = program.slots[static_cast<size_t>(uses[0])].of, first = part_of(program, uses[0], parameter);
    for (size_t use = 1; use < uses.size() && first >= 0; ++use)
      b.accumulate(b.load(part_of(program, uses[use], parameter)), first, When::every);
    wholes.push_back(uses[0]);
  }
  b.graph().nodes.push_back({.op = Op::all_gather, .in = {}, .out = {}, .reads = {}, .writes = wholes, .attrs = {}});
}

}  // namespace

void data_parallel(Program& program, Reduce reduce, int64_t bucket_bytes) {
  Section* forward = program.find(Phase::forward);
  Section* backward = program.find(Phase::backward);
  require(forward != nullptr && backward != nullptr, Code::internal, "data_parallel: no backward section; call autodiff() first");
  cut_parameters(program);
  Buckets(program, *backward, reduce, bucket_bytes).run();
  exchange_loss(program, *program.find(Phase::forward));
  gather(program);
}

}  // namespace st
