#include "base/stream_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace st {
namespace {

TEST(StreamCopy, CopiesAnyBytesToAnyPlaceAndTouchesNoOthers) {
  std::vector<std::byte> source(5000);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (const size_t size : {0, 1, 15, 63, 64, 65, 127, 128, 200, 1000, 4096, 4500})
    for (const size_t to : {0, 1, 8, 31, 63, 64})
      for (const size_t from : {0, 1, 16, 33}) {
        alignas(64) std::array<std::byte, 5000> target;
        target.fill(std::byte{0xAB});
        stream_copy({target.data() + to, size}, {source.data() + from, size});
        ASSERT_TRUE(std::equal(target.begin() + to, target.begin() + to + size, source.begin() + static_cast<int64_t>(from)))
            << size << " bytes from " << from << " to " << to;
        ASSERT_EQ(std::count(target.begin(), target.begin() + to, std::byte{0xAB}), to);
        ASSERT_TRUE(std::all_of(target.begin() + to + size, target.end(), [](std::byte byte) { return byte == std::byte{0xAB}; }));
      }
}

}  // namespace
}  // namespace st
