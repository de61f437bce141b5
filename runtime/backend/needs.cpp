#include "backend/needs.h"

#include "backend/device_registry.h"
#include "base/error.h"
#include "base/os/cpu.h"
#include "base/os/machine.h"
#include "gemm/machine_model.h"

namespace st {
namespace {

const DeviceNeeds& needs_of(const MachineProfile& machine) {
  if (machine.device == "cpu") return cpu_needs;
  if (machine.device == "cuda") return cuda_needs;
  if (machine.device == "reference") return reference_needs;
  const DeviceNeeds* const of_plugin = needs_of_plugin(machine.device);
  require(of_plugin != nullptr, Code::unavailable, "plan: nothing is known of the kernels of device \"", machine.device,
          "\"; plan for cpu, cuda or reference");
  return *of_plugin;
}

double flops_per_cycle(std::string_view kernel_class, DType dtype) {
  GemmProblem problem;
  problem.a_type = problem.b_type = dtype;
  return machine_model(os::cpu(), kernel_class, problem, 1).flops_per_cycle;
}

}  // namespace

MachineProfile profile_of(const Backend& backend, int threads) {
  static const int64_t memory = os::total_memory();
  const std::string_view kernel_class = backend.kernel_class();
  return {.device = std::string(backend.name()),
          .kernel_class = std::string(kernel_class),
          .threads = threads,
          .memory = memory,
          .clock = os::clock_rate(),
          .fp32_flops_per_cycle = flops_per_cycle(kernel_class, DType::f32),
          .bf16_flops_per_cycle = flops_per_cycle(kernel_class, DType::bf16)};
}

int64_t workspace_need(const MachineProfile& machine, Op op, Types in, Types out, const Attrs& attrs) {
  return needs_of(machine).workspace(machine, op, in, out, attrs);
}

int64_t packing_need(const MachineProfile& machine, Op op, Types in, const Attrs& attrs) {
  const auto ask = needs_of(machine).packing;
  return op != Op::fused_linear || ask == nullptr ? 0 : ask(machine, in, attrs);
}

std::optional<GemmProblem> tiled_product(const MachineProfile& machine, Op op, Types in, Types out, const Attrs& attrs) {
  const auto ask = needs_of(machine).product;
  return ask == nullptr ? std::nullopt : ask(op, in, out, attrs);
}

}  // namespace st
