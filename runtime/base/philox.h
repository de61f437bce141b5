// Philox4x32-10, counter-based random numbers (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11). A number depends only
// on its key and counter, so every rank, thread and recomputation gets the same one without communication.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace st {

struct Philox {
  std::array<uint32_t, 2> key;

  constexpr std::array<uint32_t, 4> operator()(std::array<uint32_t, 4> counter) const {
    std::array<uint32_t, 2> k = key;
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * counter[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k[0], static_cast<uint32_t>(p1),
                 static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k[1], static_cast<uint32_t>(p0)};
      k[0] += 0x9E3779B9;
      k[1] += 0xBB67AE85;
    }
    return counter;
  }
};

/// FNV-1a, 64 bits: turns a parameter's name into part of its key.
constexpr uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

/// Mixes two 64-bit words into one (splitmix64's finaliser): keys of (seed, site), (seed, epoch) and the like.
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15 * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

constexpr Philox philox_of(uint64_t key) { return {{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}}; }

/// In [0, 1): the upper 24 bits, each value exact in fp32.
constexpr float uniform_of(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

}  // namespace st
