#include "checkpoint/shard_check.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "base/error.h"
#include "checkpoint/guarded_line.h"
#include "checkpoint/safetensors_header.h"

namespace st {
namespace {

constexpr size_t kLengthBytes = 8;

[[noreturn]] void refuse(const std::string& file, std::string_view tensor, std::string_view message, int64_t offset = -1) {
  Error error(Code::corrupt, text(file, tensor.empty() ? "" : ": tensor ", tensor, ": ", message));
  error.place.file = file;
  error.place.tensor = tensor;
  error.place.offset = offset;
  throw error;
}

std::string read_header(const os::InputFile& file, const ShardFile& shard) {
  if (file.size() != shard.bytes) refuse(file.path(), "", text("has ", file.size(), " bytes, ", shard.bytes, " were written"));
  std::string header(static_cast<size_t>(shard.header_bytes), '\0');
  const auto bytes = std::as_writable_bytes(std::span(header));
  file.read_at(0, bytes);
  if (const uint32_t crc = crc32c(bytes); crc != shard.header_crc)
    refuse(file.path(), "",
           text("its header, bytes 0 to ", header.size(), ", is not what was written: it has CRC32C ", hex8(crc), ", it had ",
                hex8(shard.header_crc)),
           0);
  return header;
}

/// Records by name, each to be claimed once.
class RecordIndex {
 public:
  explicit RecordIndex(const std::vector<TensorRecord>& records) : records_(records), order_(records.size()), claimed_(records.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::sort(order_, {}, [&](size_t i) -> std::string_view { return records_[i].name; });
  }

  /// Null: none of that name is left.
  const TensorRecord* claim(std::string_view name) {
    const auto found = std::ranges::lower_bound(order_, name, {}, [&](size_t i) -> std::string_view { return records_[i].name; });
    if (found == order_.end() || records_[*found].name != name || claimed_[*found]) return nullptr;
    claimed_[*found] = true;
    return &records_[*found];
  }

  /// One that has bytes: null when there is none.
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
  const std::string text_of_header = read_header(file, shard);
  if (!shard.is_safetensors()) return {};

  uint64_t length = 0;
  for (size_t i = 0; i < std::min(text_of_header.size(), kLengthBytes); ++i)
    length |= uint64_t{static_cast<unsigned char>(text_of_header[i])} << (8 * i);
  if (text_of_header.size() < kLengthBytes || length != text_of_header.size() - kLengthBytes)
    refuse(file.path(), "", text("says its header has ", length, " bytes, the manifest says ", shard.header_bytes, " with the length"), 0);
  const SafetensorsHeader header = parse_header(std::string_view(text_of_header).substr(kLengthBytes), file.path());
  if (header.data_bytes != shard.bytes - shard.header_bytes)
    refuse(file.path(), "",
           text("its tensors take ", header.data_bytes, " bytes of the ", shard.bytes - shard.header_bytes, " behind its header"));

  RecordIndex index(header.tensors);
  std::vector<int64_t> offsets;
  for (const auto& [tensor, piece] : pieces) {
    const std::string name = piece_name(*tensor, *piece);
    const TensorRecord* record = index.claim(name);
    if (record == nullptr) refuse(file.path(), tensor->name, text("the file has no ", name, ", where the manifest says that it is"));
    const bool whole = name == tensor->name;
    const Shape shape = whole ? tensor->shape : Shape{piece->end - piece->begin};
    if (record->dtype != tensor->dtype || !(record->shape == shape))
      refuse(file.path(), tensor->name,
             text("is ", record->dtype, " ", record->shape, " in the file and ", tensor->dtype, " ", shape, " in the manifest"));
    offsets.push_back(shard.header_bytes + record->offset);
  }
  if (const TensorRecord* other = index.unclaimed())
    refuse(file.path(), other->name, "the manifest does not know it, so nothing guards its bytes");
  return offsets;
}

}  // namespace st
