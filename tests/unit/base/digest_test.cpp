#include "base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  // The output of `xxhsum -H2`.
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
  for (const Crc32cImplementation& way : crc32c_ways()) {
    if (!way.is_here()) continue;
    const auto crc = [&](std::span<const std::byte> bytes) { return way.run(bytes, 0); };
    EXPECT_EQ(crc({}), 0U) << way.name;
    EXPECT_EQ(crc(bytes_of_text("123456789")), 0xE3069283U) << way.name;
    EXPECT_EQ(crc(std::vector<std::byte>(32)), 0x8A9136AAU) << way.name;
    EXPECT_EQ(crc(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43U) << way.name;
    EXPECT_EQ(crc(up), 0x46DD794EU) << way.name;
    EXPECT_EQ(crc(down), 0x113FDB5CU) << way.name;
  }
}

TEST(Crc32c, IsTheSameByEachWayAtAnyLengthAndAlignment) {
  const Crc32cImplementation& table = crc32c_ways().back();
  ASSERT_STREQ(table.name, "table");
  const auto bytes = counting(5000);
  const std::span<const std::byte> all(bytes);
  for (const Crc32cImplementation& way : crc32c_ways()) {
    if (!way.is_here()) continue;
    for (size_t first = 0; first < 65; ++first)
      for (size_t size = 0; size < 1200; size += size < 300 ? 1 : 53)
        ASSERT_EQ(way.run(all.subspan(first, size), 0xDEADBEEF), table.run(all.subspan(first, size), 0xDEADBEEF))
            << way.name << " " << first << " " << size;
    EXPECT_EQ(way.run(all, 0), table.run(all, 0)) << way.name;
    EXPECT_EQ(crc32c(all), table.run(all, 0));
  }
}

TEST(Crc32c, GoesOnFromWhatCameBefore) {
  const auto bytes = counting(1000);
  const std::span<const std::byte> all(bytes);
  for (size_t cut = 0; cut <= all.size(); cut += 20) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
    EXPECT_EQ(crc32c_combine(crc32c(all.first(cut)), crc32c(all.subspan(cut)), static_cast<int64_t>(all.size() - cut)), crc32c(all));
  }
}

TEST(Crc32c, CombinesPartsThatAreFarApart) {
  // 6 GB of zeros after one byte, as 2^k parts joined repeatedly.
  const std::vector<std::byte> one(1, std::byte{7}), zeros(3 << 10);
  uint32_t of_zeros = crc32c(zeros);
  int64_t size = static_cast<int64_t>(zeros.size());
  uint32_t step_by_step = crc32c(zeros, crc32c(one));
  for (; size < int64_t{6} << 30; size *= 2) {
    step_by_step = crc32c_combine(step_by_step, of_zeros, size);
    of_zeros = crc32c_combine(of_zeros, of_zeros, size);
  }
  EXPECT_EQ(crc32c_combine(crc32c(one), of_zeros, size), step_by_step);
}

}  // namespace
}  // namespace st
