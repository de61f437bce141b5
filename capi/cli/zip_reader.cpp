#include "zip_reader.h"

#include "failure.h"
#include "zip_crc.h"

namespace cli {
namespace {

constexpr uint64_t kZipEnd = 22, kZip64End = 56, kZip64Locator = 20, kZipRow = 46, kZipHeader = 30;  // size of each record's fixed part
constexpr uint64_t kInZip64Field = 0xFFFFFFFF;

uint64_t zip_number(std::string_view bytes, uint64_t at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + static_cast<uint64_t>(i)])) << 8 * i;
  return value;
}

/// Finds the directory through the record at the archive's end.
class ZipDirectory {
 public:
  ZipDirectory(std::string_view archive, const std::string& file) : archive_(archive), file_(file) {
    const uint64_t end = find_end();
    count = zip_number(archive, end + 10, 2);
    bytes = zip_number(archive, end + 12, 4);
    at = zip_number(archive, end + 16, 4);
    if (end >= kZip64Locator && archive.substr(end - kZip64Locator, 4) == std::string_view("PK\x06\x07", 4)) {
      const uint64_t wide = zip_number(archive, end - kZip64Locator + 8, 8);
      if (wide > end || end - wide < kZip64End || archive.substr(wide, 4) != std::string_view("PK\x06\x06", 4))
        refuse(file, ": the ZIP64 end record is not at the place that the archive gives");
      count = zip_number(archive, wide + 32, 8);
      bytes = zip_number(archive, wide + 40, 8);
      at = zip_number(archive, wide + 48, 8);
    }
    if (at > end || bytes > end - at) refuse(file, ": its directory is beyond its end: it is truncated");
  }

  uint64_t count = 0, bytes = 0, at = 0;

 private:
  uint64_t find_end() const {
    const uint64_t size = archive_.size(), least = size < kZipEnd + 0xFFFF ? 0 : size - kZipEnd - 0xFFFF;  // only a comment may follow
    if (size >= kZipEnd)
      for (uint64_t end = size - kZipEnd + 1; end-- > least;)
        if (archive_.substr(end, 4) == std::string_view("PK\x05\x06", 4)) return end;
    refuse(file_, " is not a zip archive or is truncated; torch.save of PyTorch 1.6 and later writes one");
  }

  std::string_view archive_;
  const std::string& file_;
};

}  // namespace

ZipReader::ZipReader(std::string_view archive, std::string file) : file_(std::move(file)) {
  const ZipDirectory directory(archive, file_);
  const std::string_view rows = archive.substr(directory.at, directory.bytes);
  uint64_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (rows.size() - at < kZipRow || rows.substr(at, 4) != std::string_view("PK\x01\x02", 4))
      refuse(file_, ": row ", i, " of its directory is invalid");
    const uint64_t method = zip_number(rows, at + 10, 2), name_bytes = zip_number(rows, at + 28, 2),
                   extra_bytes = zip_number(rows, at + 30, 2);
    uint64_t stored = zip_number(rows, at + 20, 4), bytes = zip_number(rows, at + 24, 4), local = zip_number(rows, at + 42, 4);
    const auto crc = static_cast<uint32_t>(zip_number(rows, at + 16, 4));
    const uint64_t row_bytes = kZipRow + name_bytes + extra_bytes + zip_number(rows, at + 32, 2);
    if (row_bytes > rows.size() - at) refuse(file_, ": row ", i, " of its directory extends beyond it");
    const std::string name(rows.substr(at + kZipRow, name_bytes));
    const std::string_view extra = rows.substr(at + kZipRow + name_bytes, extra_bytes);
    for (uint64_t field = 0; extra.size() - field >= 4;) {
      const uint64_t size = zip_number(extra, field + 2, 2);
      if (size > extra.size() - field - 4) break;
      if (zip_number(extra, field, 2) == 1) {  // ZIP64: the values that did not fit, in this order
        uint64_t in = field + 4;
        for (uint64_t* value : {&bytes, &stored, &local})
          if (*value == kInZip64Field && in + 8 <= field + 4 + size) *value = zip_number(extra, in, 8), in += 8;
      }
      field += 4 + size;
    }
    if (method != 0 || stored != bytes) refuse(file_, ": ", name, " is compressed; torch.save does not compress");
    if (local > archive.size() || archive.size() - local < kZipHeader || archive.substr(local, 4) != std::string_view("PK\x03\x04", 4))
      refuse(file_, ": ", name, " is not where the directory says");
    const uint64_t data = local + kZipHeader + zip_number(archive, local + 26, 2) + zip_number(archive, local + 28, 2);
    if (data > archive.size() || bytes > archive.size() - data)
      refuse(file_, ": ", name, " extends beyond the end of the file: it is truncated");
    if (!entries_.emplace(name, Entry{archive.substr(data, bytes), crc}).second) refuse(file_, ": it has two entries ", name);
    if (first_name_.empty()) first_name_ = name;
    at += row_bytes;
  }
}

std::string_view ZipReader::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) refuse(file_, ": it has no entry ", name, ", so torch.save did not write it");
  if (zip_crc(found->second.bytes) != found->second.crc) refuse(file_, ": ", name, " is damaged: its checksum differs");
  return found->second.bytes;
}

}  // namespace cli
