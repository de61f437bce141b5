#include "checkpoint/write_windows.h"

namespace st {

static_assert(WriteWindows::kBytes % os::OutputFile::kDirectAlign == 0);

std::span<std::byte> WriteWindows::open() {
  if (memory_.size() == 0) memory_ = os::Pages(2 * kBytes);
  return {memory_.data() + open_, static_cast<size_t>(kBytes)};
}

void WriteWindows::write(os::OutputFile& file, int64_t offset) {
  finish();
  write_.file = &file;
  write_.offset = offset;
  write_.window = open();
  thread_.post(write_);
  open_ = kBytes - open_;
}

}  // namespace st
