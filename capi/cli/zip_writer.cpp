#include "zip_writer.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "zip_crc.h"

namespace cli {
namespace {

constexpr int64_t kAlignment = 64, kIn32 = 0xFFFFFFFF;
constexpr int64_t kDay = 0x210000;  // 1980-01-01, so that equal states give equal files

std::string zip_fields(std::initializer_list<std::pair<int64_t, int>> fields) {
  std::string out;
  for (const auto& [value, bytes] : fields)
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xFF);
  return out;
}

int64_t at_most_32(int64_t value) { return std::min(value, kIn32); }

/// An entry's header, before its bytes. Sizes are always in a ZIP64 field, so that its length is constant.
std::string zip_header(const std::string& name, int64_t at, int64_t bytes, uint32_t crc) {
  const int64_t until_padding = at + 30 + std::ssize(name) + 20 + 4;
  const int64_t padding = (kAlignment - until_padding % kAlignment) % kAlignment;
  std::string out = "PK\x03\x04";
  out += zip_fields({{45, 2}, {0, 2}, {0, 2}, {kDay, 4}, {crc, 4}, {kIn32, 4}, {kIn32, 4}, {std::ssize(name), 2}, {20 + 4 + padding, 2}});
  out += name + zip_fields({{1, 2}, {16, 2}, {bytes, 8}, {bytes, 8}});
  return out + "FB" + zip_fields({{padding, 2}}) + std::string(static_cast<size_t>(padding), 'Z');  // the padding field that torch uses
}

std::string zip_row(const std::string& name, int64_t at, int64_t bytes, uint32_t crc) {
  std::string wide;
  if (bytes >= kIn32) wide += zip_fields({{bytes, 8}, {bytes, 8}});
  if (at >= kIn32) wide += zip_fields({{at, 8}});
  if (!wide.empty()) wide = zip_fields({{1, 2}, {std::ssize(wide), 2}}) + wide;
  std::string out = "PK\x01\x02";
  out += zip_fields({{45, 2}, {45, 2}, {0, 2}, {0, 2}, {kDay, 4}, {crc, 4}, {at_most_32(bytes), 4}, {at_most_32(bytes), 4}});
  out += zip_fields({{std::ssize(name), 2}, {std::ssize(wide), 2}, {0, 2}, {0, 2}, {0, 2}, {0, 4}, {at_most_32(at), 4}});
  return out + name + wide;
}

std::string zip_end(int64_t count, int64_t at, int64_t bytes) {
  std::string out;
  if (count >= 0xFFFF || at >= kIn32 || bytes >= kIn32) {
    out = "PK\x06\x06" + zip_fields({{44, 8}, {45, 2}, {45, 2}, {0, 4}, {0, 4}, {count, 8}, {count, 8}, {bytes, 8}, {at, 8}});
    out += "PK\x06\x07" + zip_fields({{0, 4}, {at + bytes, 8}, {1, 4}});
  }
  const int64_t few = std::min<int64_t>(count, 0xFFFF);
  return out + "PK\x05\x06" + zip_fields({{0, 2}, {0, 2}, {few, 2}, {few, 2}, {at_most_32(bytes), 4}, {at_most_32(at), 4}, {0, 2}});
}

}  // namespace

void ZipWriter::entry(const std::string& name, std::string_view bytes) {
  const Row row{name, file_.size(), std::ssize(bytes), zip_crc(bytes)};
  file_.add(zip_header(row.name, row.at, row.bytes, row.crc));
  file_.add(bytes);
  rows_.push_back(row);
}

void ZipWriter::finish() {
  const int64_t at = file_.size();
  std::string directory;
  for (const Row& row : rows_) directory += zip_row(row.name, row.at, row.bytes, row.crc);
  file_.add(directory + zip_end(std::ssize(rows_), at, std::ssize(directory)));
  file_.finish();
}

}  // namespace cli
