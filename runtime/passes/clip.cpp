#include "passes/clip.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "passes/gradient_slots.h"
#include "passes/rewrite.h"
#include "passes/stage_sums.h"
#include "passes/update.h"

namespace st {

namespace {

/// Norms over some of the gradients. Of ranks that have shards of them each gets the sums of all blocks; of stages, and of ranks along the
/// tensor axis, those of all tensors.
class Norms {
 public:
  Norms(Builder& b, const std::vector<SlotId>& gradients, int64_t most) : b_(b) {
    Program& program = b.program();
    if (most < std::numeric_limits<int64_t>::max()) {
      sum_apart(gradients, most);
      return;
    }
    const bool is_sharded = !gradients.empty() && program.slot(program.slot(gradients[0]).of).update.is_flat();
    if (!is_sharded && program.mesh.stage == 1 && program.mesh.tensor == 1) return;
    squares_of(gradients);
    for (const MeshAxis axis : {MeshAxis::tensor, MeshAxis::stage})
      if (program.mesh.size(axis) > 1) sum_over(axis, gradients);
  }

  /// The norm, and whether all is finite.
  std::vector<Value> of(const std::vector<SlotId>& gradients) const {
    if (!sums_.empty()) {
      Value sum = sums_.at(gradients[0]);
      for (size_t i = 1; i < gradients.size(); ++i) sum = b_.add(sum, sums_.at(gradients[i]));  // the order of norm_of_squares
      return b_.append(Op::norm_of_squares, {sum}, {{"tensors", Ints{0, 1}}});
    }
    if (!squares_) {
      std::vector<Value> loaded;
      for (const SlotId gradient : gradients) loaded.push_back(b_.load(gradient));
      return b_.append(Op::gradient_norm, loaded);
    }
    return b_.append(Op::norm_of_squares, {squares_}, {{"tensors", tensors(gradients)}});
  }

 private:
  /// Squares of the blocks of these gradients, one tensor after another.
  void squares_of(const std::vector<SlotId>& gradients) {
    Builder& b = b_;
    Program& program = b.program();
    const bool is_sharded = !gradients.empty() && program.slot(program.slot(gradients[0]).of).update.is_flat();
    std::vector<Value> own;
    Ints parameters;
    int64_t blocks = 0;
    for (const SlotId gradient : gradients) {
      tensors_[gradient] = {blocks, 0};
      if (!is_here(program, program.slot(gradient))) continue;
      const SlotId parameter = program.slot(gradient).of;
      if (!is_sharded || has_shard(program, parameter)) own.push_back(is_sharded ? b.load_shard(gradient) : b.load(gradient));
      parameters.push_back(parameter);
      const int64_t of_this = norm_blocks(program.slot(parameter).type.shape.elements());
      tensors_[gradient].second = of_this;
      blocks += of_this;
    }
    squares_ = b.append(Op::gradient_squares, own)[0];
    if (is_sharded) squares_ = gather(parameters, blocks);
  }

  Ints tensors(const std::vector<SlotId>& gradients) const {
    Ints tensors;
    for (const SlotId gradient : gradients) {
      const auto& [first, blocks] = tensors_.at(gradient);
      tensors.insert(tensors.end(), {first, blocks});
    }
    return tensors;
  }

  /// The sum of each tensor by a node of its own, over the blocks of as many of them as one node may read.
  void sum_apart(const std::vector<SlotId>& gradients, int64_t at_a_time) {
    std::vector<std::vector<SlotId>> groups;
    std::vector<Value> of_groups;  // the sums of the tensors of each
    for (size_t first = 0, end = 0; first < gradients.size(); first = end) {
      end = end_of_group(b_.program(), gradients, first, at_a_time);
      const auto& group =
          groups.emplace_back(gradients.begin() + static_cast<ptrdiff_t>(first), gradients.begin() + static_cast<ptrdiff_t>(end));
      tensors_.clear();
      if (std::ranges::none_of(group, [&](SlotId of) { return is_here(b_.program(), b_.program().slot(of)); })) {
        of_groups.emplace_back();  // zeros
        continue;
      }
      squares_of(group);
      if (b_.program().mesh.tensor > 1) count_once(group);
      of_groups.push_back(b_(Op::tensor_squares, {squares_}, {{"tensors", tensors(group)}}));
    }
    for (const MeshAxis axis : {MeshAxis::tensor, MeshAxis::stage})
      if (b_.program().mesh.size(axis) > 1) sum_over(axis, groups, of_groups);
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t i = 0; i < groups[g].size(); ++i)
        sums_[groups[g][i]] = b_(Op::tensor_squares, {of_groups[g]}, {{"tensors", Ints{static_cast<int64_t>(i), 1}}});
  }

  /// From the data ranks, which have shards.
  Value gather(const Ints& parameters, int64_t blocks) {
    const SlotId all = b_.program().add_slot({.name = free_name(b_.program(), "gradient_squares"),
                                              .type = {.dtype = DType::f64, .shape = {blocks}, .layout = {}},
                                              .role = Role::report,
                                              .init = {}});
    b_.graph().nodes.push_back({.op = Op::gather_squares,
                                .in = {squares_},
                                .out = {},
                                .reads = {},
                                .writes = {all},
                                .attrs = make_attrs(Op::gather_squares, {{"parameters", parameters}})});
    return b_.load(all);
  }

  /// From the stages, each of which has all blocks of some tensors, or from the ranks along the tensor axis, which have pieces of tensors:
  /// a sum for each tensor takes the place of its blocks.
  void sum_over(MeshAxis axis, const std::vector<SlotId>& gradients) {
    if (axis == MeshAxis::tensor) count_once(gradients);
    std::vector<Value> sums = {b_(Op::tensor_squares, {squares_}, {{"tensors", tensors(gradients)}})};
    sum_over(axis, {gradients}, sums);
    squares_ = sums[0];
    for (size_t i = 0; i < gradients.size(); ++i) tensors_[gradients[i]] = {static_cast<int64_t>(i), 1};
  }

  /// Keeps, on the first tensor rank alone, the sums of tensors that all ranks along the tensor axis have.
  void count_once(const std::vector<SlotId>& gradients) {
    const Program& program = b_.program();
    for (const SlotId gradient : gradients)
      if (program.tensor_rank > 0 && program.slot(gradient).type.layout[MeshAxis::tensor] == AxisLayout{}) tensors_[gradient].second = 0;
  }

  /// `sums`: of the tensors of each group, which become those of all ranks along the axis.
  void sum_over(MeshAxis axis, const std::vector<std::vector<SlotId>>& groups, std::vector<Value>& sums) {
    std::vector<std::pair<Value, SlotId>> terms;
    for (size_t g = 0; g < groups.size(); ++g) {
      const Type type = {.dtype = DType::f64, .shape = {std::ssize(groups[g])}, .layout = {}};
      const SlotId sum =
          b_.program().add_slot({.name = free_name(b_.program(), "tensor_squares"), .type = type, .role = Role::report, .init = {}});
      terms.emplace_back(sums[g], sum);
    }
    sum_along(b_, axis, terms);
    for (size_t g = 0; g < groups.size(); ++g) sums[g] = b_.load(terms[g].second);
  }

  Builder& b_;
  std::map<SlotId, std::pair<int64_t, int64_t>> tensors_;  // by gradient: its first block and how many
  std::map<SlotId, Value> sums_;                           // by gradient: of the tensor, if the gradients are summed apart
  Value squares_;                                          // of blocks, or of tensors; none: gradients are whole and of one stage
};

}  // namespace

std::string factor_slot(int group) { return group < 0 ? "factor" : text("factor.", group); }

void clip(Program& program, double max_norm, const ClipGroups& groups, int64_t at_a_time) {
  const auto check_norm = [](double norm) {
    check(norm >= 0, "clip: the norm limit must be at least 0, got ", norm, "; 0 is no clipping");
  };
  check_norm(max_norm);
  std::ranges::for_each(groups.max_norms, check_norm);
  Builder b = open_update(program);

  std::vector<SlotId> gradients;
  std::vector<std::vector<SlotId>> of_group(groups.max_norms.size());
  for (const std::vector<SlotId>& uses : gradient_slots(program)) {
    gradients.push_back(uses[0]);
    const Slot& gradient = program.slot(uses[0]);
    const int group = groups.group_of ? groups.group_of(program.slot(gradient.of)) : -1;
    if (group >= 0) of_group[static_cast<size_t>(group)].push_back(uses[0]);
  }

  const Norms norms(b, gradients, at_a_time);
  const bool has_unit = program.step.gradient_unit >= 0;
  if (!has_unit) share_loss(b);
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
