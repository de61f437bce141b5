#include "checkpoint/checkpoint_block.h"

#include "base/crc32c.h"
#include "checkpoint/corrupt.h"
#include "checkpoint/guarded_line.h"

namespace st {

void read_block(const os::InputFile& file, const BlockPlace& place, std::span<std::byte> out) {
  const int64_t offset = place.offset + place.begin();
  about_tensor(place.tensor->name, [&] { file.read_at(offset, out); });
  const uint32_t crc = crc32c(out), written = place.piece->blocks[static_cast<size_t>(place.block)];
  if (crc == written) return;
  throw_corrupt(file.path(), place.tensor->name,
                text("block ", place.block, ", bytes ", offset, " to ", offset + place.bytes(), " of the file, is damaged: its CRC32C is ",
                     hex8(crc), ", expected ", hex8(written)),
                offset);
}

}  // namespace st
