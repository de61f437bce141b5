#include "base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.h"

namespace st {
namespace {

std::vector<std::byte> counting(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 31 + (i >> 8));
  return bytes;
}

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

TEST(Digest, IsXxh3Of128Bits) {
  // What `xxhsum -H2` prints.
  Digest digest;
  EXPECT_EQ(digest.hex(), "99aa06d3014798d86001c324468d497f");
  digest.update("abc");
  EXPECT_EQ(digest.hex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Digest, DoesNotDependOnHowItIsFed) {
  const auto bytes = counting(100000);
  Digest whole;
  whole.update(bytes);
  for (const size_t piece : {1UL, 7UL, 1024UL, 65536UL}) {
    Digest pieces;
    for (size_t i = 0; i < bytes.size(); i += piece) pieces.update(std::span(bytes).subspan(i, std::min(piece, bytes.size() - i)));
    EXPECT_EQ(pieces.hex(), whole.hex()) << piece;
  }
}

TEST(Digest, KeepsSizedTextsApart) {
  Digest a, b;
  a.update_sized("ab");
  a.update_sized("c");
  b.update_sized("a");
  b.update_sized("bc");
  EXPECT_NE(a.hex(), b.hex());
}

TEST(Crc32c, GivesThePublishedValues) {
  // RFC 3720, B.4; "123456789" is the check value of the CRC catalogues.
  std::vector<std::byte> up(32), down(32);
  for (size_t i = 0; i < 32; ++i) up[i] = down[31 - i] = static_cast<std::byte>(i);
  for (const auto crc : {+[](std::span<const std::byte> bytes) { return crc32c(bytes); },
                         +[](std::span<const std::byte> bytes) { return crc32c_by_table(bytes); }}) {
    EXPECT_EQ(crc({}), 0U);
    EXPECT_EQ(crc(bytes_of_text("123456789")), 0xE3069283U);
    EXPECT_EQ(crc(std::vector<std::byte>(32)), 0x8A9136AAU);
    EXPECT_EQ(crc(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43U);
    EXPECT_EQ(crc(up), 0x46DD794EU);
    EXPECT_EQ(crc(down), 0x113FDB5CU);
  }
}

TEST(Crc32c, GoesOnFromWhatCameBefore) {
  const auto bytes = counting(1000);
  const std::span<const std::byte> all(bytes);
  for (size_t cut = 0; cut < 40; ++cut) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
    EXPECT_EQ(crc32c_by_table(all.subspan(cut)), crc32c(all.subspan(cut)));  // every alignment and length of the tail
    EXPECT_EQ(crc32c_by_table(all.first(cut)), crc32c(all.first(cut)));
  }
}

}  // namespace
}  // namespace st
