#include "data/token_header.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace st {
namespace {

constexpr std::string_view kTokenMagic = "STTOKENS";
constexpr uint64_t kVersion = 1;

// Offsets of the fields.
constexpr size_t kVersionAt = 8, kWidthAt = 12, kVocabularyAt = 16, kCountAt = 24;

uint64_t number_at(std::span<const std::byte> bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

void put_number(std::span<std::byte> bytes, size_t at, size_t size, uint64_t value) {
  for (size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace

bool TokenHeader::is_at(std::span<const std::byte> file) {
  return file.size() >= kTokenMagic.size() && std::memcmp(file.data(), kTokenMagic.data(), kTokenMagic.size()) == 0;
}

TokenHeader TokenHeader::read(std::span<const std::byte> file, const std::string& path) {
  const auto demand = [&](bool holds, size_t at, const auto&... parts) {
    if (holds) return;
    Error error(Code::corrupt, text("data: token file ", path, ": ", parts...));
    error.place.file = path;
    error.place.offset = static_cast<int64_t>(at);
    throw error;
  };
  demand(file.size() >= kBytes, file.size(), "the header takes 32 bytes, the file has ", file.size());
  const uint64_t version = number_at(file, kVersionAt, 4);
  const uint64_t width = number_at(file, kWidthAt, 4);
  const uint64_t vocabulary = number_at(file, kVocabularyAt, 8);
  const uint64_t count = number_at(file, kCountAt, 8);
  demand(version == kVersion, kVersionAt, "version must be ", kVersion, ", got ", version);
  demand(width == 2 || width == 4, kWidthAt, "bytes of an id must be 2 (uint16) or 4 (uint32), got ", width);
  demand(vocabulary >= 1 && vocabulary <= kMaxVocabulary, kVocabularyAt, "vocabulary must be 1 to ", kMaxVocabulary, ", got ", vocabulary);
  const uint64_t room = file.size() - kBytes;
  // By division: the product with a hostile count may overflow.
  demand(count <= room / width, kCountAt, "the header declares ", count, " tokens of ", width, " bytes, but only ", room, " bytes follow; ",
         "the file is truncated");
  demand(count * width == room, kBytes + count * width, room - count * width, " bytes follow the ", count,
         " tokens that the header declares");
  demand(count > 0, kCountAt, "it holds no tokens");
  return {static_cast<int64_t>(width), static_cast<int64_t>(vocabulary), static_cast<int64_t>(count)};
}

std::array<std::byte, TokenHeader::kBytes> TokenHeader::bytes() const {
  std::array<std::byte, kBytes> out{};
  std::memcpy(out.data(), kTokenMagic.data(), kTokenMagic.size());
  put_number(out, kVersionAt, 4, kVersion);
  put_number(out, kWidthAt, 4, static_cast<uint64_t>(width));
  put_number(out, kVocabularyAt, 8, static_cast<uint64_t>(vocabulary));
  put_number(out, kCountAt, 8, static_cast<uint64_t>(count));
  return out;
}

}  // namespace st
