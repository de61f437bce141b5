// The source of a random product's decisions: its seed alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

namespace st::fuzz {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t in(int64_t least, int64_t most) { return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1)); }
  double fraction() { return static_cast<double>(random_() >> 11) * 0x1p-53; }  // [0, 1)
  double number() { return 2 * fraction() - 1; }
  bool chance(double probability) { return fraction() < probability; }
  template <class T, size_t kCount>
  T pick(const std::array<T, kCount>& from) {
    return from[random_() % kCount];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace st::fuzz
