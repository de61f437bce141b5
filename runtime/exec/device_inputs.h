// Where a device of its own memory has the host's rows and numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "exec/upload_ring.h"
#include "plan/plan.h"

namespace st {

class DeviceInputs {
 public:
  /// Allocates the memory of input_copies(). Borrows the last two arguments; `stream` gets the copies.
  DeviceInputs(const Plan& plan, Backend& backend, Stream& stream);

  /// The place of an input; none: no instruction reads the slot, or it is no input.
  Address at(SlotId slot) const { return at_[static_cast<size_t>(slot)]; }
  /// Copies the host's bytes, which are taken within the call, for the work that the stream gets from now on.
  void write(Address to, const void* from, int64_t bytes) { uploads_.write(to, from, bytes); }
  int64_t bytes() const { return (memory_ ? memory_->size() : 0) + uploads_.bytes(); }

 private:
  std::unique_ptr<Buffer> memory_;
  std::vector<Address> at_;  // by slot
  UploadRing uploads_;
};

}  // namespace st
