#include "data/stream.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "base/error.h"

namespace st {
namespace {

// Four rounds suffice for a cipher's proof on wide halves. Ours may be one bit wide, where more rounds improve the mixing.
constexpr uint32_t kRounds = 12;

constexpr uint64_t mask_of(uint32_t bits) { return (uint64_t{1} << bits) - 1; }

}  // namespace

Permutation::Permutation(int64_t n, uint64_t key) : n_(static_cast<uint64_t>(n)), random_(philox_of(key)) {
  assert(n >= 1);
  const auto bits = std::max(static_cast<uint32_t>(std::bit_width(n_ - 1)), 2U);
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
}

int64_t Permutation::operator()(int64_t i) const {
  auto value = static_cast<uint64_t>(i);
  assert(value < n_);
  do {
    uint64_t high = value >> low_bits_;
    uint64_t low = value & mask_of(low_bits_);
    // The halves change each other in turn. They may differ by a bit in width, so they do not swap places.
    for (uint32_t round = 0; round < kRounds; round += 2) {
      high ^= random_({static_cast<uint32_t>(low), round, 0, 0})[0] & mask_of(high_bits_);
      low ^= random_({static_cast<uint32_t>(high), round + 1, 0, 0})[0] & mask_of(low_bits_);
    }
    value = (high << low_bits_) | low;
  } while (value >= n_);  // the power of two is less than 2n (except for n = 1): fewer than two iterations on average
  return static_cast<int64_t>(value);
}

DataStream::DataStream(int64_t rows, uint64_t seed) : rows_(rows), seed_(seed) {
  check(rows >= 1, "data: the rows of a stream must be 1 or more, got ", rows);
}

int64_t DataStream::operator[](int64_t index) const {
  assert(index >= 0);
  return Permutation(rows_, mix(seed_, static_cast<uint64_t>(index / rows_)))(index % rows_);
}

void DataStream::fill(int64_t first, std::span<int64_t> out) const {
  for (size_t i = 0; i < out.size(); ++i) out[i] = (*this)[first + static_cast<int64_t>(i)];
}

}  // namespace st
