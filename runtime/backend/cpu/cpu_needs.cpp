// The needs of the cpu's kernels. Headers shared with the kernels say how these cut their work.
#include <algorithm>

#include "backend/cpu/adafactor_work.h"
#include "backend/cpu/attention_scratch.h"
#include "backend/cpu/gemm/product_needs.h"
#include "backend/cpu/matmul_batches.h"
#include "backend/cpu/muon_iteration.h"
#include "backend/cpu/row_chunks.h"
#include "backend/linear_call.h"
#include "backend/merged_axes.h"
#include "backend/needs.h"
#include "base/error.h"
#include "gemm/tile_sizes.h"
#include "ir/piece_update.h"

namespace st {
namespace {

using namespace cpu;

InstructionSet set_of(const MachineProfile& machine) {
  const auto* const found = std::ranges::find(kCpuClasses, machine.kernel_class);
  require(found != kCpuClasses.end(), Code::unavailable, "plan: the cpu has no kernel class \"", machine.kernel_class, "\"");
  return static_cast<InstructionSet>(found - kCpuClasses.begin());
}

/// The tile of all kernels but products: those of bf16 sets are avx512's.
KernelTile tile_of(const MachineProfile& machine) { return kernel_tile(std::min(set_of(machine), InstructionSet::avx512)); }

std::optional<GemmProblem> product_of(Op op, Types in, Types out, const Attrs& attrs) {
  switch (op) {
    case Op::fused_linear:
      return linear_problem(in, attrs);
    case Op::linear: {
      const GemmProblem p = linear_problem(in[0].shape.elements(0, in[0].shape.rank() - 1), in[1].shape, in[1].dtype, attrs, true);
      check_problem(p, "linear");
      return p;
    }
    case Op::matmul: {  // one iteration of the outer loop
      const GemmProblem p = matmul_batches(in[0].shape, in[0].dtype, in[1].shape, in[1].dtype, out[0].shape, out[0].dtype, attrs).problem;
      check_problem(p, "matmul");
      return p;
    }
    default:
      return std::nullopt;
  }
}

/// Our kernels' schedule, also for a product by a library, which is given the same workspace.
TileSchedule schedule_of(const MachineProfile& machine, const GemmProblem& p, const Attrs& attrs) {
  return product_schedule(set_of(machine), p, wish_of_sizes(attrs.ints("tiles")));
}

int64_t muon_workspace(const MachineProfile& machine, const Shape& shape) {
  const MuonIteration it(shape);
  int64_t most = 0;
  for (const GemmProblem* p : {&it.gram, &it.polynomial, &it.next})
    most = std::max(most, product_workspace(*p, product_schedule(set_of(machine), *p), machine.threads));
  return it.floats() * 4 + most;
}

int64_t adafactor_bytes(const Type& gradient) {
  const Matrices m(gradient.shape);
  return partial_bytes(gradient.dtype, m) + (m.count + 2 * WorkUnits(m).count) * 8;
}

int64_t sum_workspace(const Type& x, const Attrs& attrs) {
  const MergedAxes axes("sum", x.shape, attrs.ints("axes"));
  if (!axes.regular) return 0;
  if (axes.inner == 1) return chunks_of(axes.gone) == 1 ? 0 : axes.outer * chunks_of(axes.gone) * 8;
  const int64_t blocks = row_blocks(axes.gone);
  return blocks <= 1 ? 0 : axes.outer * blocks * axes.inner * bytes_of_compute(x.dtype);
}

int64_t workspace_of(const MachineProfile& machine, Op op, Types in, Types out, const Attrs& attrs) {
  switch (op) {
    case Op::adafactor:
      return adafactor_bytes(in[0]);
    case Op::adafactor_sums:
    case Op::adafactor_size:
    case Op::adafactor_step:  // and the piece's sums or variances
      return adafactor_bytes(in[0]) + (in[0].shape.rank() < 2 ? 0 : (in[0].shape[0] + in[0].shape[1]) * 8);
    case Op::attention:
      return ForwardScratch(Heads(in[0].shape, in[1].shape, attrs), tile_of(machine), nullptr).floats * 4 * machine.threads;
    case Op::attention_backward:
      return BackwardScratch(Heads(in[0].shape, in[1].shape, attrs), tile_of(machine), nullptr).floats * 4 * machine.threads;
    case Op::bce_with_logits:
    case Op::huber:
    case Op::mse:
      return tasks_of(in[0].shape.elements()) * 16;
    case Op::cross_entropy:
    case Op::fused_cross_entropy:
    case Op::vocabulary_cross_entropy:
      return in[1].shape.elements() * 8;
    case Op::embedding_backward:
    case Op::gather_backward:
      return bytes_of(out[0].dtype) == 2 ? out[0].shape.elements() * 4 : 0;
    case Op::fused_linear:
    case Op::linear:
    case Op::matmul: {
      const GemmProblem p = *product_of(op, in, out, attrs);
      return product_workspace(p, schedule_of(machine, p, attrs), machine.threads);
    }
    case Op::gradient_norm: {
      int64_t most = 0;
      for (const Type& gradient : in) most = std::max(most, tasks_of(gradient.shape.elements()));
      return most * 9;
    }
    case Op::layer_norm_backward:
      return row_blocks(in[2].shape.elements()) * 2 * in[0].shape.last() * bytes_of_compute(in[0].dtype);
    case Op::mean:
    case Op::sum:
      return sum_workspace(in[0], attrs);
    case Op::muon:
      return muon_workspace(machine, in[0].shape);
    case Op::muon_step:
      return muon_workspace(machine, whole_of_directions(in[0].shape, attrs));
    case Op::rms_norm_backward:
      return row_blocks(in[2].shape.elements()) * in[0].shape.last() * bytes_of_compute(in[0].dtype);
    case Op::rope:
      return in[0].shape[1] * in[0].shape[3] * bytes_of_compute(in[0].dtype);
    default:
      return 0;
  }
}

/// Packing costs the same for few rows as for many: for 1024 rows it is 1 % of a training step (tests/bench/README.md), not worth a second
/// copy of the weight. Very few rows and the smallest products read the weight in place, as fast as packed.
constexpr int64_t kRowsWorthPacking = 512, kFewestRows = 40;

int64_t packed_weight(const MachineProfile& machine, Types in, const Attrs& attrs) {
  const GemmProblem p = linear_problem(in, attrs);
  if (attrs.has("library") && !attrs.word("library").empty()) return 0;  // reads it unpacked
  const TileSchedule schedule = schedule_of(machine, p, attrs);
  const InstructionSet set = set_of(machine);
  const bool in_place = (!schedule.packs_b() && p.m <= kFewestRows) || is_small(kernel_tile(set).width(), p, schedule, false, 1);
  return in_place || p.m > kRowsWorthPacking ? 0 : packed_bytes(set, p, schedule);
}

}  // namespace

const DeviceNeeds cpu_needs = {workspace_of, packed_weight, product_of};

}  // namespace st
