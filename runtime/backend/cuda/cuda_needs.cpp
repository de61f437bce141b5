// The needs of the kernels of NVIDIA's devices. Part of the library, so that plans can be made without a toolkit or a device.
#include "backend/cuda/update_numbers.h"
#include "backend/needs.h"

namespace st {
namespace {

int64_t workspace_of(const MachineProfile& /*machine*/, Op op, Types /*in*/, Types /*out*/, const Attrs& /*attrs*/) {
  switch (op) {
    case Op::adamw:
    case Op::sgd:
    case Op::lion:
    case Op::rmsprop:
    case Op::adagrad:
      return sizeof(cuda::UpdateNumbers);
    default:
      return 0;
  }
}

}  // namespace

constinit const DeviceNeeds cuda_needs = {workspace_of};

}  // namespace st
