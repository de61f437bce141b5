#include "passes/clip.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "passes/gradient_slots.h"

namespace st {

namespace {

/// Norms over some of the gradients. Of ranks that have shards of them each gets the sums of all blocks.
class Norms {
 public:
  Norms(Builder& b, const std::vector<SlotId>& gradients) : b_(b) {
    Program& program = b.program();
    if (gradients.empty() || !program.slot(program.slot(gradients[0]).of).update.is_flat()) return;
    std::vector<Value> shards;
    Ints parameters;
    int64_t blocks = 0;
    for (const SlotId gradient : gradients) {
      const SlotId parameter = program.slot(gradient).of;
      if (has_shard(program, parameter)) shards.push_back(b.load_shard(gradient));
      parameters.push_back(parameter);
      const int64_t of_this = norm_blocks(program.slot(parameter).type.shape.elements());
      tensors_[gradient] = {blocks, of_this};
      blocks += of_this;
    }
    const SlotId all = program.add_slot(
        {.name = "gradient_squares", .type = {.dtype = DType::f64, .shape = {blocks}, .layout = {}}, .role = Role::report, .init = {}});
    b.graph().nodes.push_back({.op = Op::gather_squares,
                               .in = b.append(Op::gradient_squares, shards),
                               .out = {},
                               .reads = {},
                               .writes = {all},
                               .attrs = make_attrs(Op::gather_squares, {{"parameters", parameters}})});
    squares_ = b.load(all);
  }

  /// The norm, and whether all is finite.
  std::vector<Value> of(const std::vector<SlotId>& gradients) const {
    if (!squares_) {
      std::vector<Value> loaded;
      for (const SlotId gradient : gradients) loaded.push_back(b_.load(gradient));
      return b_.append(Op::gradient_norm, loaded);
    }
    Ints tensors;
    for (const SlotId gradient : gradients) {
      const auto& [first, blocks] = tensors_.at(gradient);
      tensors.insert(tensors.end(), {first, blocks});
    }
    return b_.append(Op::norm_of_squares, {squares_}, {{"tensors", tensors}});
  }

 private:
  Builder& b_;
  std::map<SlotId, std::pair<int64_t, int64_t>> tensors_;  // by gradient: its first block and how many
  Value squares_;                                          // none: gradients are whole
};

}  // namespace

std::string factor_slot(int group) { return group < 0 ? "factor" : text("factor.", group); }

void clip(Program& program, double max_norm, const ClipGroups& groups) {
  const auto check_norm = [](double norm) {
    check(norm >= 0, "clip: the norm limit must be at least 0, got ", norm, "; 0 is no clipping");
  };
  check_norm(max_norm);
  std::ranges::for_each(groups.max_norms, check_norm);
  const bool is_opened = program.find(Phase::update) != nullptr;  // by who gathers from ranks, and has added the uses
  if (!is_opened) program.sections.push_back({.graph = {}, .phase = Phase::update});
  Builder b(program, static_cast<int32_t>(program.find(Phase::update) - program.sections.data()));

  std::vector<SlotId> gradients;
  std::vector<std::vector<SlotId>> of_group(groups.max_norms.size());
  for (const std::vector<SlotId>& uses : gradient_slots(program)) {
    for (size_t use = 1; use < uses.size() && !is_opened; ++use) b.accumulate(b.load(uses[use]), uses[0], When::every);
    gradients.push_back(uses[0]);
    const Slot& gradient = program.slot(uses[0]);
    const int group = groups.group_of ? groups.group_of(program.slot(gradient.of)) : -1;
    if (group >= 0) of_group[static_cast<size_t>(group)].push_back(uses[0]);
  }

  const Norms norms(b, gradients);
  const bool has_unit = program.step.gradient_unit >= 0;
  Value units = b.load(has_unit ? program.step.gradient_unit : program.step.loss_count);
  if (program.step.loss_scale >= 0) units = b.mul(units, b.load(program.step.loss_scale));
  const double seed = has_unit ? 1 : program.loss_seed;
  const auto factor_of = [&](const std::vector<Value>& of, double most) {
    return b.append(Op::step_factor, {of[0], of[1], units}, {{"seed", seed}, {"max_norm", most}});
  };
  const auto report = [&](Value value, const std::string& name) {
    const SlotId slot = program.add_slot({.name = name, .type = b.type(value), .role = Role::report, .init = {}});
    b.store(value, slot);
    return slot;
  };
  const auto factor = factor_of(norms.of(gradients), max_norm);
  report(factor[0], factor_slot(-1));
  program.step.grad_norm = report(factor[1], "grad_norm");
  program.step.skipped = report(factor[2], "skipped");
  for (size_t group = 0; group < of_group.size(); ++group)
    if (!of_group[group].empty())
      report(factor_of(norms.of(of_group[group]), groups.max_norms[group])[0], factor_slot(static_cast<int>(group)));
}

}  // namespace st
