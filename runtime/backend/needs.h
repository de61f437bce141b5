// Memory needs of a device's kernels, from types and the machine's profile alone, so that plans can be made where the device is not.
#pragma once

#include <optional>

#include "backend/backend.h"
#include "base/machine_profile.h"

namespace st {

/// The profile of the machine that this process runs on, for ranks of so many threads.
MachineProfile profile_of(const Backend& backend, int threads);

using Types = std::span<const Type>;

/// Bytes of workspace. Throws unsupported for element types without a kernel; unavailable for a device or kernel class that is unknown.
int64_t workspace_need(const MachineProfile& machine, Op op, Types in, Types out, const Attrs& attrs);
/// Bytes of the packed weight of a fused_linear; 0: an unpacked weight is as fast.
int64_t packing_need(const MachineProfile& machine, Op op, Types in, const Attrs& attrs);
/// The matrix product of an op that takes `tiles`; nothing: another op, or a device that does not obey them.
std::optional<GemmProblem> tiled_product(const MachineProfile& machine, Op op, Types in, Types out, const Attrs& attrs);

/// The same of one device. A null function: no kernel needs it.
struct DeviceNeeds {
  int64_t (*workspace)(const MachineProfile& machine, Op op, Types in, Types out, const Attrs& attrs);
  int64_t (*packing)(const MachineProfile& machine, Types in, const Attrs& attrs) = nullptr;
  std::optional<GemmProblem> (*product)(Op op, Types in, Types out, const Attrs& attrs) = nullptr;
};
extern const DeviceNeeds cpu_needs, reference_needs, cuda_needs;

}  // namespace st
