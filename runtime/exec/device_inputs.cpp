#include "exec/device_inputs.h"

#include "plan/input_copies.h"

namespace st {

DeviceInputs::DeviceInputs(const Plan& plan, Backend& backend, Stream& stream)
    : uploads_(backend, stream, input_copies(plan).upload_bytes()) {
  const InputCopies copies = input_copies(plan);
  if (copies.bytes > 0) memory_ = backend.allocate(copies.bytes, MemoryRole::inputs);
  for (const int64_t offset : copies.offsets) at_.push_back(offset < 0 ? Address{} : memory_->data() + offset);
}

}  // namespace st
