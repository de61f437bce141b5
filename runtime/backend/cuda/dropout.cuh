// y = x keep / (1 - rate), with the cpu's bits: which elements are kept is said by backend/dropout_mask.h, whose key and counter these are.
// A thread has kEach neighbouring elements; four of a sample that begin at a multiple of four take the words of one Philox block.
#pragma once

#include <cstdint>

#include <device/access.h>
#include <device/threads.h>

#include "backend/cuda/doubles.cuh"
#include "backend/cuda/halves.cuh"
#include "backend/cuda/vectors.cuh"

namespace st::cuda {

struct PhiloxWords {
  uint32_t at[4];
};

/// As Philox of base/philox.h.
DEVICE PhiloxWords philox(uint64_t key, uint64_t low, uint64_t high) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32), c2 = static_cast<uint32_t>(high),
           c3 = static_cast<uint32_t>(high >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

/// As mix() of base/philox.h.
DEVICE uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15 * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

template <class C>
struct DropoutRule {
  uint64_t site_key;   // mix(seed, site)
  uint32_t threshold;  // DropoutMask::threshold_of(rate)
  C factor;            // 1 / (1 - rate)
  int64_t first;       // the element of the whole at which x begins
  int64_t per_sample;  // elements
};

template <class C>
DEVICE C kept(const DropoutRule<C>& rule, uint32_t word, C x) {
  return (word >> 8) >= rule.threshold ? times(x, rule.factor) : C(0);
}

/// counters: the number of step attempts and the first sample.
template <class T>
KERNEL(kBlock)
drop_elements(DropoutRule<Compute<T>> rule, const int64_t* counters, const T* x, T* y, int64_t elements) {
  using C = Compute<T>;
  constexpr int kEach = sizeof(T) == 8 ? 4 : static_cast<int>(16 / sizeof(T));  // whole Philox blocks
  const int64_t begin = (int64_t{block_index()} * kBlock + thread_index()) * kEach;
  if (begin >= elements) return;
  const uint64_t key = mixed(rule.site_key, static_cast<uint64_t>(counters[0]));
  const int64_t place = rule.first + begin, sample = place / rule.per_sample, element = place - sample * rule.per_sample;
  const auto first_sample = static_cast<uint64_t>(counters[1]);
  if (begin + kEach <= elements && element % 4 == 0 && element + kEach <= rule.per_sample) {
    const auto read = load_vector<Vector<T, kEach>>(x + begin);
    Vector<T, kEach> made;
    for (int block = 0; block < kEach; block += 4) {
      const PhiloxWords words = philox(key, static_cast<uint64_t>(element + block) / 4, first_sample + static_cast<uint64_t>(sample));
      for (int i = 0; i < 4; i += 2) {
        const C low = kept<C>(rule, words.at[i], widen(read.at[block + i]));
        narrow_pair(made.at + block + i, low, kept<C>(rule, words.at[i + 1], widen(read.at[block + i + 1])));
      }
    }
    return store_vector(y + begin, made);
  }
  for (int64_t i = begin; i < begin + kEach && i < elements; ++i) {
    const int64_t own = (rule.first + i) / rule.per_sample, at = rule.first + i - own * rule.per_sample;
    const PhiloxWords words = philox(key, static_cast<uint64_t>(at) / 4, first_sample + static_cast<uint64_t>(own));
    const int lane = static_cast<int>(at % 4);
    const uint32_t word = lane == 0 ? words.at[0] : lane == 1 ? words.at[1] : lane == 2 ? words.at[2] : words.at[3];
    T made[2];
    narrow_pair(made, kept<C>(rule, word, widen(x[i])), C(0));
    y[i] = made[0];
  }
}

}  // namespace st::cuda
