#include "base/vector_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace st {
namespace {

TEST(VectorCopy, CopiesAnyBytesToAnyPlaceAndTouchesNoOthers) {
  vector_copy(nullptr, nullptr, 0);
  std::vector<std::byte> source(20000);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + i / 256);
  std::vector<std::byte> target(source.size());
  for (const size_t size : {1, 63, 64, 1000, 1023, 1024, 1025, 1087, 1088, 4096, 4500})
    for (const size_t from : {0, 1, 33})
      for (const size_t to : {0, 8, 63, 64, 1500, 2047, 2048, 3000, 4095, 4096}) {  // after the source in its page, and before it
        std::ranges::fill(target, std::byte{0xAB});
        vector_copy(target.data() + to, source.data() + from, size);
        const auto begin = target.begin() + static_cast<ptrdiff_t>(to), end = begin + static_cast<ptrdiff_t>(size);
        const auto is_untouched = [](std::byte byte) { return byte == std::byte{0xAB}; };
        ASSERT_TRUE(std::equal(begin, end, source.begin() + static_cast<ptrdiff_t>(from)))
            << size << " bytes from " << from << " to " << to;
        ASSERT_TRUE(std::all_of(target.begin(), begin, is_untouched) && std::all_of(end, target.end(), is_untouched))
            << size << " bytes from " << from << " to " << to;
      }
}

}  // namespace
}  // namespace st
