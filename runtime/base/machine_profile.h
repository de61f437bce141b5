// The machine that a plan is for, as a value. `scaletrain info --json` writes it, so that plans can be made where the machine is not.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace st {

struct MachineProfile {
  std::string device = "cpu";             // cpu, reference, or cuda: an NVIDIA GPU
  std::string kernel_class = "portable";  // one of the device's; what its kernels need depends on it
  int threads = 1;                        // of a rank
  int64_t alignment = 64;                 // of buffers, bytes
  int64_t memory = 0;                     // of the machine, bytes; 0: unknown
  int64_t reserved = 0;                   // bytes of a device that its driver, context and libraries take, NCCL's too; cpu: 0
  double clock = 0;                       // cycles per second of a core, measured; 0: unknown
  // Rates of a core's products, from the table in gemm/machine_model.cpp; 0: unknown.
  double fp32_flops_per_cycle = 0, bf16_flops_per_cycle = 0;

  std::string json() const;
};

/// Kernel classes of the cpu, from the narrowest; in the order of InstructionSet.
constexpr std::array<std::string_view, 5> kCpuClasses = {"portable", "avx2", "avx512", "avx512_bf16", "amx_bf16"};
/// Compute capabilities of NVIDIA GPUs, as their compiler names them.
constexpr std::array<std::string_view, 3> kCudaClasses = {"sm_70", "sm_80", "sm_90"};

/// Reads what json() wrote. Throws invalid_argument with the field, its value and what is allowed: a field that is missing or unknown, a
/// wrong type, another version, an unknown device or kernel class, a number out of range.
MachineProfile parse_machine_profile(std::string_view json);

}  // namespace st
