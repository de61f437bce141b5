// Bytes through a ring, and a peer whose counters are wrong.
#include "comm/local/byte_ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace st {
namespace {

struct Ring : testing::Test {
  static constexpr size_t kBytes = 4096;
  RingCounts counts{};
  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  RingWriter writer{{&counts, memory.data(), kBytes}};
  RingReader reader{{&counts, memory.data(), kBytes}};
};

TEST_F(Ring, GivesBytesInOrderWhateverThePieces) {
  std::mt19937 random(7);
  std::vector<std::byte> sent(100'000), got;
  for (std::byte& byte : sent) byte = static_cast<std::byte>(random());
  for (size_t at = 0; got.size() < sent.size();) {
    const size_t piece = std::min<size_t>(random() % 3000, sent.size() - at);
    at += writer.put(std::span(sent).subspan(at, piece));
    const auto front = reader.front();
    const size_t taken = std::min<size_t>(front.size(), random() % 3000);
    got.insert(got.end(), front.begin(), front.begin() + static_cast<std::ptrdiff_t>(taken));
    reader.take(taken);
  }
  EXPECT_EQ(got, sent);
  EXPECT_EQ(writer.room(), kBytes);
}

TEST_F(Ring, ShowsAnotherThreadWholeBytesOnly) {
  constexpr size_t kPiece = 700;  // not streamed: ThreadSanitizer sees the copy
  std::vector<std::byte> sent(100'000), got;
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i % 251);
  std::thread other([&] {
    for (size_t at = 0; at < sent.size();) at += writer.put(std::span(sent).subspan(at, std::min(kPiece, sent.size() - at)));
  });
  while (got.size() < sent.size()) {
    const auto front = reader.front();
    got.insert(got.end(), front.begin(), front.end());
    reader.take(front.size());
  }
  other.join();
  EXPECT_EQ(got, sent);
}

TEST_F(Ring, TakesNoMoreThanThereIsRoomFor) {
  const std::vector<std::byte> much(3 * kBytes);
  EXPECT_EQ(writer.put(much), kBytes);
  EXPECT_EQ(writer.room(), 0U);
  EXPECT_EQ(writer.put(much), 0U);
  reader.take(100);
  EXPECT_EQ(writer.put(much), 100U);
  EXPECT_FALSE(writer.is_broken() || reader.is_broken());
}

TEST_F(Ring, AWriterThatClaimsTheImpossibleIsNotRead) {
  for (const uint64_t claim : {uint64_t{kBytes + 1}, UINT64_MAX, uint64_t{1} << 63}) {
    RingReader fresh({&counts, memory.data(), kBytes});
    counts.written.store(claim);
    EXPECT_TRUE(fresh.front().empty());
    EXPECT_TRUE(fresh.is_broken());
    counts.written.store(10);  // stays broken
    EXPECT_TRUE(fresh.front().empty());
  }
}

TEST_F(Ring, AReaderThatClaimsTheImpossibleIsNotWrittenTo) {
  const std::vector<std::byte> some(100);
  for (const uint64_t claim : {uint64_t{1}, UINT64_MAX, uint64_t{1} << 63}) {
    RingWriter fresh({&counts, memory.data(), kBytes});
    counts.taken.store(claim);
    EXPECT_EQ(fresh.put(some), claim == UINT64_MAX ? 100U : 0U) << claim;  // -1 taken looks like one byte that is still to be taken
  }
}

}  // namespace
}  // namespace st
