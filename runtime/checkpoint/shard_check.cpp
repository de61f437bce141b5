#include "checkpoint/shard_check.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "checkpoint/corrupt.h"
#include "checkpoint/guarded_line.h"
#include "checkpoint/safetensors_header.h"

namespace st {
namespace {

std::string read_header(const os::InputFile& file, const ShardFile& shard) {
  if (file.size() != shard.bytes) throw_corrupt(file.path(), "", text("has ", file.size(), " bytes, but ", shard.bytes, " were written"));
  std::string header(static_cast<size_t>(shard.header_bytes), '\0');
  const auto bytes = std::as_writable_bytes(std::span(header));
  file.read_at(0, bytes);
  if (const uint32_t crc = crc32c(bytes); crc != shard.header_crc)
    throw_corrupt(
        file.path(), "",
        text("its header, bytes 0 to ", header.size(), ", is damaged: its CRC32C is ", hex8(crc), ", expected ", hex8(shard.header_crc)),
        0);
  return header;
}

/// Records by name; each can be claimed once.
class RecordIndex {
 public:
  explicit RecordIndex(const std::vector<TensorRecord>& records) : records_(records), order_(records.size()), claimed_(records.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::sort(order_, {}, [&](size_t i) -> std::string_view { return records_[i].name; });
  }

  /// Null: no unclaimed record has that name.
  const TensorRecord* claim(std::string_view name) {
    const auto found = std::ranges::lower_bound(order_, name, {}, [&](size_t i) -> std::string_view { return records_[i].name; });
    if (found == order_.end() || records_[*found].name != name || claimed_[*found]) return nullptr;
    claimed_[*found] = true;
    return &records_[*found];
  }

  /// An unclaimed record that has bytes; null if there is none.
  const TensorRecord* unclaimed() const {
    for (size_t i = 0; i < records_.size(); ++i)
      if (!claimed_[i] && records_[i].bytes() > 0) return &records_[i];
    return nullptr;
  }

 private:
  const std::vector<TensorRecord>& records_;
  std::vector<size_t> order_;
  std::vector<bool> claimed_;
};

}  // namespace

std::vector<int64_t> check_shard(const os::InputFile& file, const ShardFile& shard, std::span<const PlacedPiece> pieces) {
  const std::string start = read_header(file, shard);
  if (!shard.is_safetensors()) return {};

  const int64_t length = header_length(std::as_bytes(std::span(start)), file.path());
  if (length != shard.header_bytes - kLengthBytes)
    throw_corrupt(file.path(), "", text("gives its header ", length, " bytes, the manifest ", shard.header_bytes - kLengthBytes), 0);
  const SafetensorsHeader header = parse_header(std::string_view(start).substr(kLengthBytes), file.path());
  if (header.data_bytes != shard.bytes - shard.header_bytes)
    throw_corrupt(file.path(), "",
                  text("its tensors take ", header.data_bytes, " of the ", shard.bytes - shard.header_bytes, " bytes after its header"));

  if (!header.foreign.empty())
    throw_corrupt(file.path(), header.foreign[0].name, text("is ", header.foreign[0].dtype, ", a dtype that checkpoints do not use"));

  RecordIndex index(header.tensors);
  std::vector<int64_t> offsets;
  for (const auto& [tensor, piece] : pieces) {
    const std::string name = piece_name(*tensor, *piece);
    const TensorRecord* record = index.claim(name);
    if (record == nullptr)
      throw_corrupt(file.path(), tensor->name, text("the file has no tensor ", name, ", but the manifest lists it there"));
    const bool whole = name == tensor->name;
    const Shape shape = whole ? tensor->shape : Shape{piece->end - piece->begin};
    if (record->dtype != tensor->dtype || !(record->shape == shape))
      throw_corrupt(file.path(), tensor->name,
                    text("is ", record->dtype, " ", record->shape, " in the file and ", tensor->dtype, " ", shape, " in the manifest"));
    offsets.push_back(shard.header_bytes + record->offset);
  }
  if (const TensorRecord* other = index.unclaimed())
    throw_corrupt(file.path(), other->name, "is not in the manifest, so no checksum covers its bytes");
  return offsets;
}

}  // namespace st
